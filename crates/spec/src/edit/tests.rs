//! What an edit makes of deploy files written in different ways.

use super::*;

const BLOCK: &str = "# mine
cluster-id: demo
masters: [{name: m0, ip: 10.0.0.1}]
workers:   # all of them
  - name: w0   # the first
    ip: 10.0.0.2
    labels: {a: b}
  # the second
  - {name: w1, ip: 10.0.0.3} # behind
service:
  cidr: 10.32.0.0/16
";

fn entry(name: &str, ip: &str) -> Entry {
    Entry::new(&[
        ("name", Some(name.into())),
        ("ip", Some(ip.into())),
        ("port", None),
    ])
}

fn added(text: &str) -> String {
    add_workers(text, &[entry("w9", "10.0.0.9")]).unwrap()
}

fn removed(text: &str, names: &[&str]) -> Result<String, Error> {
    let names = names.iter().map(|name| Name::parse(name).unwrap());
    remove(text, &names.collect())
}

#[test]
fn a_worker_is_added_behind_the_others() {
    let line = "  - {name: w1, ip: 10.0.0.3} # behind\n";
    let expected = BLOCK.replace(line, &format!("{line}  - {{name: w9, ip: 10.0.0.9}}\n"));
    assert_eq!(added(BLOCK), expected);
    let base = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\n";
    for (written, expected) in [
        (
            "workers: [{name: w0, ip: 10.0.0.2}]\n",
            "workers: [{name: w0, ip: 10.0.0.2}, {name: w9, ip: 10.0.0.9}]\n",
        ),
        ("nodes: []\n", "nodes: [{name: w9, ip: 10.0.0.9}]\n"),
        ("workers:\n", "workers: [{name: w9, ip: 10.0.0.9}]\n"),
        (
            "workers: ~ # none\n",
            "workers: [{name: w9, ip: 10.0.0.9}] # none\n",
        ),
        ("", "workers:\n  - {name: w9, ip: 10.0.0.9}\n"),
        (
            "workers:\n- name: w0\n  ip: 10.0.0.2",
            "workers:\n- name: w0\n  ip: 10.0.0.2\n- {name: w9, ip: 10.0.0.9}\n",
        ),
    ] {
        let text = format!("{base}{written}");
        assert_eq!(added(&text), format!("{base}{expected}"), "{written}");
    }
    assert!(matches!(
        add_workers(BLOCK, &[entry("w9", "10.0.0.3")]),
        Err(Error::Invalid { .. })
    ));
}

#[test]
fn machines_go_with_their_lines() {
    let without = BLOCK.replace("  - {name: w1, ip: 10.0.0.3} # behind\n", "");
    assert_eq!(removed(BLOCK, &["w1"]).unwrap(), without);
    let first = "  - name: w0   # the first\n    ip: 10.0.0.2\n    labels: {a: b}\n";
    assert_eq!(removed(BLOCK, &["w0"]).unwrap(), BLOCK.replace(first, ""));
    let none = removed(BLOCK, &["w0", "w1"]).unwrap();
    assert!(none.contains("workers: []   # all of them\n"), "{none}");
    let flow = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: m0, ip: 10.0.0.1}, {name: w1, ip: 10.0.0.3}]\n\
            loadbalance:\n  name: lb\n  ip: 10.0.0.8\n  bind-port: 8443\nruntime: containerd\n";
    let left = removed(flow, &["w1", "lb"]).unwrap();
    assert_eq!(
        left,
        "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\nworkers: [{name: m0, ip: 10.0.0.1}]\nruntime: containerd\n"
    );
    // A cluster without a master is no cluster.
    assert!(matches!(removed(flow, &["m0"]), Err(Error::Invalid { .. })));
}

#[test]
fn a_repeated_edit_changes_nothing() {
    let once = added(BLOCK);
    assert_eq!(added(&once), once);
    let other = add_workers(&once, &[entry("w8", "10.0.0.9")]);
    assert!(matches!(other, Err(Error::Invalid { .. })), "{other:?}");
    assert_eq!(
        removed(&removed(&once, &["w9"]).unwrap(), &["w9"]).unwrap(),
        BLOCK
    );
}

#[test]
fn what_stands_around_is_left_alone() {
    let base = "cluster-id: demo\nmasters: [{name: m0, ip: 10.0.0.1}]\n";
    let several = format!("{base}workers: [\n  {{name: w0, ip: 10.0.0.2}} # first\n]\n");
    assert_eq!(
        added(&several),
        several.replace("0.2}", "0.2}, {name: w9, ip: 10.0.0.9}")
    );
    let comma = format!("{base}workers: [{{name: w0, ip: 10.0.0.2}}, ]\n");
    assert_eq!(added(&comma).matches("name: w").count(), 2);
    assert_eq!(removed(&comma, &["w0"]), Err(Error::Unsupported));
    let marked =
        format!("\u{feff}# 负载均衡\n{base}# 负载均衡\nloadbalance: {{name: lb, ip: 10.0.0.8}}\n");
    assert_eq!(
        removed(&marked, &["lb"]).unwrap(),
        format!("\u{feff}# 负载均衡\n{base}# 负载均衡\n")
    );
    let merged = format!(
        "{base}workers:\n- &w\n  name: w0\n  ip: 10.0.0.2\n  port: 2222\n- <<: *w\n  name: w1\n  ip: 10.0.0.3\n- <<: *w\n  name: w2\n  ip: 10.0.0.4\n"
    );
    let left = removed(&merged, &["w1"]).unwrap();
    assert_eq!(
        left,
        merged.replace("- <<: *w\n  name: w1\n  ip: 10.0.0.3\n", "")
    );
    // Others are like it.
    assert_eq!(removed(&merged, &["w0"]), Err(Error::Unsupported));
}

#[test]
fn a_load_balancer_is_added_once() {
    let lb = Entry::new(&[("name", Some("lb".into())), ("ip", Some("10.0.0.8".into()))]);
    let text = add_load_balancer(BLOCK, &lb).unwrap();
    assert_eq!(
        text,
        format!("{BLOCK}loadbalance: {{name: lb, ip: 10.0.0.8}}\n")
    );
    assert!(matches!(
        add_load_balancer(&text, &entry("lb", "10.0.0.7")),
        Err(Error::Invalid { .. })
    ));
}

#[test]
fn machines_of_a_file_for_joining_keep_their_keys() {
    let text = "masters: []\nworkers:\n- name: w9\n  ip: 10.0.0.9\n  labels: {rack: 'a-1'}\n- {ip: 10.0.0.10}\n";
    let entries = Entry::from_list(text, "workers");
    assert_eq!(entries.len(), 2);
    assert_eq!(
        entries[0].to_string(),
        "{name: w9, ip: 10.0.0.9, labels: {rack: a-1}}"
    );
    let text = add_workers(BLOCK, &entries).unwrap();
    let cluster = parse_cluster(&text).unwrap();
    assert_eq!(cluster.workers().len(), 4);
    assert_eq!(Entry::from_list(text.as_str(), "etcds"), []);
}

#[test]
fn every_example_can_be_edited() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut edited = 0;
    for file in std::fs::read_dir(examples).unwrap() {
        let path = file.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let Ok(before) = parse_cluster(&text) else {
            continue;
        };
        let arch = before.machines()[0].arch.to_string();
        let values = [("name", "w-new"), ("ip", "192.168.255.9"), ("arch", &arch)];
        let new = Entry::new(&values.map(|(key, value)| (key, Some(value.to_owned()))));
        let more = add_workers(&text, &[new]);
        let more = more.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(
            parse_cluster(&more).unwrap().workers().len(),
            before.workers().len() + 1
        );
        let less = removed(&more, &["w-new"]).unwrap();
        assert_eq!(parse_cluster(&less).unwrap(), before, "{}", path.display());
        edited += 1;
    }
    assert!(edited > 1, "{edited}");
}

proptest::proptest! {
    /// However it is written, what comes out says what it said, with the change.
    #[test]
    fn an_edit_changes_what_it_is_asked_for(
        is_block in proptest::prelude::any::<bool>(),
        count in 0_usize..4,
        indent in 0_usize..4,
        comment in "(  # [a-z:,\\[\\]{} -]{0,12})?",
        gap in "(\n|  \n|# [a-z -]{0,8}\n){0,2}",
    ) {
        let pad = " ".repeat(indent);
        let mut text = format!("cluster-id: demo\nmasters: [{{name: m0, ip: 10.0.0.1}}]\n{gap}");
        let items: Vec<_> = (0..count).map(|n| format!("{{name: w{n}, ip: 10.0.1.{n}}}")).collect();
        if is_block && count > 0 {
            text += &format!("workers:{comment}\n");
            for item in &items {
                text += &format!("{pad}- {item}{comment}\n{gap}");
            }
        } else {
            text += &format!("workers: [{}]{comment}\n", items.join(", "));
        }
        text += "runtime: containerd\n";
        let before = parse_cluster(&text).unwrap();
        let more = added(&text);
        let after = parse_cluster(&more).unwrap();
        proptest::prop_assert_eq!(after.workers().len(), count + 1);
        proptest::prop_assert_eq!(parse_cluster(&removed(&more, &["w9"]).unwrap()).unwrap(), before);
        if count > 0 {
            let less = parse_cluster(&removed(&text, &["w0"]).unwrap()).unwrap();
            proptest::prop_assert_eq!(less.workers().len(), count - 1);
        }
    }
}
