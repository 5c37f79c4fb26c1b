use std::time::{Duration, Instant};

use super::*;

fn read(bytes: &[u8]) -> (Option<Node>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let node = parse(Input::private("f.yaml", bytes), &mut diagnostics);
    assert!(node.is_some() || diagnostics.has_errors());
    (node, diagnostics)
}

fn good(text: &str) -> Node {
    let (node, diagnostics) = read(text.as_bytes());
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(false));
    node.unwrap()
}

fn codes(text: &str) -> Vec<(&'static str, usize, usize)> {
    let (_, diagnostics) = read(text.as_bytes());
    diagnostics
        .sorted()
        .iter()
        .map(|one| {
            let place = diagnostics.place(one.span).unwrap();
            (one.code, place.start.line, place.start.column)
        })
        .collect()
}

#[test]
fn scalars_stay_as_written() {
    let node = good(
        "password: 123456\nversion: 1.10\nport: 022\nyes: yes\nquoted: \"a\\tb\"\nempty:\nnull: ~\n",
    );
    for (key, text) in [
        ("password", "123456"),
        ("version", "1.10"),
        ("port", "022"),
        ("yes", "yes"),
        ("quoted", "a\tb"),
    ] {
        assert_eq!(node.get(key).unwrap().text(), Some(text));
    }
    assert!(node.get("empty").unwrap().is_null());
    assert!(node.get("null").unwrap().is_null());
}

#[test]
fn every_value_knows_its_place() {
    let text = "a:\n- {b: 集群, c: \"d\"}\n- plain  \n";
    let node = good(text);
    let list = node.get("a").unwrap();
    let items = list.items().unwrap();
    let part = |span: Span| &text[span.start..span.end];
    assert_eq!(part(items[0].span), "{b: 集群, c: \"d\"}");
    assert_eq!(part(items[0].get("b").unwrap().span), "集群");
    assert_eq!(part(items[0].entry("c").unwrap().0.span), "c");
    assert_eq!(part(items[0].get("c").unwrap().span), "\"d\"");
    assert_eq!(part(items[1].span), "plain");
    assert_eq!(part(list.span), "{b: 集群, c: \"d\"}\n- plain");
}

#[test]
fn bom_crlf_and_empty_files_are_fine() {
    assert_eq!(
        good("\u{feff}a: 1\r\nb: 2\r\n").get("b").unwrap().text(),
        Some("2")
    );
    assert_eq!(good("").entries(), Some(&[][..]));
    assert_eq!(good("# only a comment\n---\n").entries(), Some(&[][..]));
}

#[test]
fn anchors_and_merges_work() {
    let node = good(
        "x: &h {user: u, port: 1}\ny: {<<: *h, port: 2}\nz: [*h]\nw:\n  <<: [*h, {more: 3}]\n",
    );
    assert_eq!(
        node.get("y").unwrap().get("user").unwrap().text(),
        Some("u")
    );
    assert_eq!(
        node.get("y").unwrap().get("port").unwrap().text(),
        Some("2")
    );
    assert_eq!(
        node.get("z").unwrap().items().unwrap()[0]
            .get("port")
            .unwrap()
            .text(),
        Some("1")
    );
    assert_eq!(
        node.get("w").unwrap().get("more").unwrap().text(),
        Some("3")
    );
}

#[test]
fn mistakes_have_places() {
    assert_eq!(codes("a: 1\nb: 2\na: 3\n"), [("duplicate-key", 3, 1)]);
    assert_eq!(codes("a: 1\n---\nb: 2\n"), [("second-document", 2, 1)]);
    assert_eq!(codes("a: *b\n"), [("unknown-anchor", 1, 4)]);
    assert_eq!(codes("a: &b [*b]\n"), [("endless-alias", 1, 8)]);
    assert_eq!(codes("a: !vault x\n"), [("unknown-tag", 1, 11)]);
    assert_eq!(codes("? [a]\n: b\n"), [("bad-key", 1, 3)]);
    assert_eq!(codes("<<: 3\n"), [("bad-merge", 1, 1)]);
    assert_eq!(codes("a: \"b\n")[0].0, "syntax");
    assert_eq!(codes("a:\n\tb: 1\n")[0].0, "syntax");
    assert_eq!(codes("a: [1\nb: 2\n")[0].0, "syntax");
    assert_eq!(codes("a: b\u{0}c\n"), [("control-character", 1, 5)]);
    assert_eq!(
        codes("a: 1 // x\nb: 2 // y\nb: 3\n"),
        [("slash-comment", 1, 6), ("duplicate-key", 3, 1)]
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let (node, diagnostics) = read(b"a: 1\nb: \xff\xfe\n");
    assert_eq!(node, None);
    let place = diagnostics.place(diagnostics.sorted()[0].span).unwrap();
    assert_eq!((place.start.line, place.start.column), (2, 4));
    let (_, diagnostics) = read(b"\xff\xfea\0b\0");
    assert!(diagnostics.sorted()[0].message.contains("UTF-16"));
}

#[test]
fn bombs_depth_and_size_are_refused_quickly() {
    let begin = Instant::now();
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let row = vec![before; 10].join(",");
        bomb += &format!("a{level}: &a{level} [{row}]\n");
    }
    assert_eq!(codes(&bomb)[0].0, "too-many-values");
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        vec!["*a"; 1000].join(",")
    );
    assert_eq!(codes(&long)[0].0, "too-many-values");
    assert_eq!(codes(&"[".repeat(100_000))[0].0, "too-deep");
    let blocks: String = (0..200).map(|n| " ".repeat(n) + "a:\n").collect();
    assert_eq!(codes(&blocks)[0].0, "too-deep");
    let aliases: String = (1..100).fold("a0: &a0 [x]\n".into(), |text, n| {
        format!("{text}a{n}: &a{n} [*a{}]\n", n - 1)
    });
    assert_eq!(codes(&aliases)[0].0, "too-deep");
    assert_eq!(codes(&"x".repeat(17 << 20))[0].0, "file-too-big");
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn full_width_punctuation_is_explained() {
    let (_, diagnostics) = read("a: 1\nmasters：\n- x: 1\n".as_bytes());
    let remedy = diagnostics.sorted()[0].remedy.clone().unwrap();
    assert!(
        remedy.contains("full-width"),
        "{}",
        diagnostics.render(false)
    );
}
