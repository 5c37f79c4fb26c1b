//! Whatever the bytes are: a cluster or errors, never a panic, in bounded time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may fail loudly"
)]

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use hatchery_spec::keys::KEYS;
use hatchery_spec::reading::{Reading, read};
use hatchery_spec::source::Input;
use proptest::prelude::*;

const EXAMPLES: [&str; 6] = [
    include_str!("../../../examples/classic.yaml"),
    include_str!("../../../examples/centos.yaml"),
    include_str!("../../../examples/openeuler.yaml"),
    include_str!("../../../examples/online.yaml"),
    include_str!("../../../examples/offline.yaml"),
    include_str!("files/manual-sample.yaml"),
];

/// Reads, and holds the answer to what every answer must be.
fn answer(bytes: &[u8]) -> Reading {
    let reading = read(Input {
        name: "f.yaml",
        bytes,
        others_can_read: true,
    });
    assert_eq!(reading.cluster.is_none(), reading.diagnostics.has_errors());
    for one in reading.diagnostics.sorted() {
        let place = reading.diagnostics.place(one.span).unwrap();
        assert!(place.start.line >= 1 && place.start <= place.end);
        assert!(one.remedy.is_some(), "{one:?}");
    }
    let text = reading.diagnostics.render(false);
    assert_eq!(text.is_empty(), reading.diagnostics.is_empty());
    reading.diagnostics.render(true);
    serde_json::to_string(&reading.diagnostics).unwrap();
    reading
}

/// One change to a text, by bytes or by lines.
#[derive(Clone, Debug)]
enum Edit {
    Replace(usize, u8),
    Insert(usize, String),
    Delete(usize, usize),
    RepeatLine(usize),
    SwapLines(usize, usize),
    Indent(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<usize>();
    prop_oneof![
        (at, any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (at, "[-:\\[\\]{}&*!|>'\"%@`#,? \n\ta-z0-9./~]{1,4}")
            .prop_map(|(at, text)| Edit::Insert(at, text)),
        (at, 1..20usize).prop_map(|(at, length)| Edit::Delete(at, length)),
        at.prop_map(Edit::RepeatLine),
        (at, any::<usize>()).prop_map(|(one, two)| Edit::SwapLines(one, two)),
        at.prop_map(Edit::Indent),
    ]
}

fn edited(text: &str, edits: &[Edit]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for edit in edits {
        let length = bytes.len().max(1);
        match edit {
            Edit::Replace(at, byte) => {
                if let Some(old) = bytes.get_mut(at % length) {
                    *old = *byte;
                }
            }
            Edit::Insert(at, more) => {
                let at = at % length;
                bytes.splice(at..at, more.bytes());
            }
            Edit::Delete(at, count) => {
                let at = at % length;
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Edit::RepeatLine(at) | Edit::SwapLines(at, _) | Edit::Indent(at) => {
                let mut lines: Vec<Vec<u8>> =
                    bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
                let (at, count) = (at % lines.len(), lines.len());
                match edit {
                    Edit::SwapLines(_, other) => lines.swap(at, other % count),
                    Edit::Indent(_) => lines[at].splice(0..0, *b"  ").for_each(drop),
                    _ => lines.insert(at, lines[at].clone()),
                }
                bytes = lines.join(&b'\n');
            }
        }
    }
    bytes
}

/// A value of any shape, made of words that deploy files use.
fn soup() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("~".to_owned()),
        Just("true".to_owned()),
        Just("192.168.0.1".to_owned()),
        Just("10.32.0.0/16".to_owned()),
        Just("'fd00::/56,10.0.0.0/8'".to_owned()),
        Just("/usr/bin".to_owned()),
        Just("k8s.example.org:6443".to_owned()),
        Just("pkg".to_owned()),
        Just("shell".to_owned()),
        Just("120s".to_owned()),
        "[0-9]{1,6}",
        "\"[ -!#-\\[\\]-~]{0,8}\"",
    ];
    scalar.prop_recursive(5, 60, 8, |inner| {
        let key = prop::sample::select(KEYS.iter().map(|info| info.key).collect::<Vec<_>>());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec((key, inner), 0..8).prop_map(|entries| {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{key}: {value}"))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        answer(&bytes);
    }

    #[test]
    fn any_text(text in "\\PC{0,300}") {
        answer(text.as_bytes());
    }

    #[test]
    fn any_yaml_like_text(text in "[-:\\[\\]{}&*!|>'\"%@#,?<~ \n\ta-c1]{0,200}") {
        answer(text.as_bytes());
    }

    #[test]
    fn any_example_with_a_few_changes(which in 0..EXAMPLES.len(), edits in prop::collection::vec(edit(), 1..8)) {
        answer(&edited(EXAMPLES[which], &edits));
    }

    #[test]
    fn any_tree_of_known_keys(entries in prop::collection::vec((prop::sample::select(
        KEYS.iter().filter(|info| info.section.is_empty()).map(|info| info.key).collect::<Vec<_>>()), soup()), 0..12)) {
        let text: String = entries.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        answer(text.as_bytes());
    }

    /// What was written is what is read.
    #[test]
    fn valid_files_say_what_they_mean(
        masters in 1..4usize, workers in 0..12usize, etcds in prop::sample::select(vec![0, 1, 3]),
        balancer: bool, classic: bool, port in 1..=65535u16, third in 0..200u8, bind in 7000..9000u16,
    ) {
        let list = if classic { "nodes" } else { "workers" };
        let mut text = "cluster-id: c\nprivate-key-path: ~/k\nmasters:\n".to_owned();
        let host = |name: &str, index: usize| format!("- {{name: {name}, ip: 192.168.{third}.{index}, port: {port}}}\n");
        for n in 1..=masters {
            text += &host(&format!("m{n}"), n);
        }
        writeln!(text, "{list}:").unwrap();
        for n in 1..=masters {
            text += &host(&format!("m{n}"), n);
        }
        for n in 0..workers {
            text += &host(&format!("w{n}"), 50 + n);
        }
        if etcds > 0 {
            text += "etcds:\n";
            for n in 0..etcds {
                text += &host(&format!("e{n}"), 100 + n);
            }
        }
        if balancer {
            writeln!(text, "loadbalance: {{name: lb, ip: 192.168.{third}.200, bind-port: {bind}}}").unwrap();
        }
        let reading = answer(text.as_bytes());
        let cluster = reading.cluster.unwrap();
        prop_assert_eq!(cluster.masters().len(), masters);
        prop_assert_eq!(cluster.workers().len(), masters + workers);
        prop_assert_eq!(cluster.etcds().len(), if etcds == 0 { masters } else { etcds });
        prop_assert_eq!(cluster.machines().len(), masters + workers + etcds + usize::from(balancer));
        let first = std::net::IpAddr::V4(Ipv4Addr::new(192, 168, third, 1));
        prop_assert_eq!(cluster.first_master().address, first);
        prop_assert_eq!(cluster.first_master().access.port.number(), port);
        let endpoint = if balancer {
            format!("192.168.{third}.200:{bind}")
        } else {
            format!("192.168.{third}.1:6443")
        };
        prop_assert_eq!(cluster.endpoint.to_string(), endpoint);
        prop_assert_eq!(cluster.machines().iter().all(|one| one.set_hostname), classic);
    }
}

/// Debug builds on busy machines are slow; what is quadratic takes minutes.
fn within(limit: Duration, what: &str, work: impl FnOnce()) {
    let begin = Instant::now();
    work();
    assert!(begin.elapsed() < limit, "{what} took {:?}", begin.elapsed());
}

#[test]
fn ten_megabytes_of_junk_are_refused_soon() {
    let size = 10 << 20;
    let limit = Duration::from_secs(60);
    for (what, piece) in [
        ("one word", "x"),
        ("opening brackets", "["),
        ("dashes", "- "),
        ("lines", "a\n"),
        ("empty items", "-\n"),
        ("slashes", "// "),
        ("quotes", "\"'"),
        ("keys", "key: value\n"),
        ("comments", "# x\n"),
        ("tabs", "\t\n"),
        ("colons", ": "),
        ("questions", "? "),
        ("aliases", "*a "),
        ("passwords", "password: x\n"),
        ("zeros", "\0"),
    ] {
        let text = piece.repeat(size / piece.len());
        within(limit, what, || {
            answer(text.as_bytes());
        });
    }
    let unknown: String = (0..400_000).map(|n| format!("key{n}: value\n")).collect();
    within(limit, "unknown keys", || {
        answer(unknown.as_bytes());
    });
}

#[test]
fn five_thousand_machines_take_about_a_second() {
    let mut text =
        "cluster-id: big\nprivate-key-path: ~/k\nnetwork: {podcidr: 10.128.0.0/11}\nmasters:\n"
            .to_owned();
    let host = |n: usize| {
        format!(
            "- {{name: n{n}, ip: 172.16.{}.{}, port: 22, arch: amd64}}\n",
            n / 250,
            1 + n % 250
        )
    };
    (0..3).for_each(|n| text += &host(n));
    text += "workers:\n";
    (0..5000).for_each(|n| text += &host(n));
    within(Duration::from_secs(10), "5,000 machines", || {
        let reading = read(Input::private("f.yaml", text.as_bytes()));
        assert_eq!(reading.cluster.unwrap().machines().len(), 5000);
    });
    let wrong = text.replace("arch: amd64", "arch: vax");
    within(Duration::from_secs(20), "5,000 mistakes", || {
        assert_eq!(answer(wrong.as_bytes()).diagnostics.errors(), 5003);
    });
}
