//! How long clusters take, beside kubeadm and eggo, on the same machines in one run.
//!
//! `cargo bench --bench deploy -- [WORD…]` measures only what is named: `1+1`, `3+2`, `classic`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement may fail loudly"
)]

mod classic;
mod kubeadm;
mod place;
mod prepared;
mod timeline;

use crate::{place::Place, timeline::Timeline};

/// Machines of which so many are masters; all are nodes.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    name: &'static str,
    machines: usize,
    masters: usize,
    /// How many times as fast as kubeadm it is to be.
    aim: f64,
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "1+1",
        machines: 2,
        masters: 1,
        aim: 1.0,
    },
    Shape {
        name: "3+2",
        machines: 5,
        masters: 3,
        aim: 1.5,
    },
];

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    // `cargo test --benches` only wants to know that it builds.
    if words.iter().any(|word| word == "--test") {
        return;
    }
    let named: Vec<_> = words
        .iter()
        .filter(|word| !word.starts_with("--"))
        .collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|word| *word == name);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for shape in SHAPES.into_iter().filter(|shape| wanted(shape.name)) {
            beside_kubeadm(shape).await;
        }
        if wanted("classic") {
            classic::beside_eggo().await;
        }
    });
}

/// From bare machines, then with everything in its place, then kubeadm: each after the other was taken away.
async fn beside_kubeadm(shape: Shape) {
    let name = shape.name;
    let place = Place::new(shape).await;
    println!("{name} with set new, on {} machines", shape.machines);
    let bare = deploy(&place, "from bare machines");
    println!("{}", bare.table());
    cleanup(&place, "cleanup");

    prepared::put_in_place(&place).await;
    let ours = deploy(&place, "files and images in place");
    println!("{}", ours.table());
    assert_ready(&place, "/etc/kubernetes/admin.conf", shape.machines).await;
    cleanup(&place, "cleanup");
    println!(
        "  distribution adds {:.1} s",
        bare.seconds() - ours.seconds()
    );

    kubeadm::outfit(&place, shape).await;
    let theirs = kubeadm::make(&place, shape).await;
    let ready = ours.end_of("node ready");
    println!(
        "  kubeadm, files and images in place: all nodes Ready after {:.1} s ({})",
        theirs.ready, theirs.steps
    );
    println!(
        "  {name}: all nodes Ready {:.2} times as fast as kubeadm (aim: {})\n",
        theirs.ready / ready,
        shape.aim
    );
}

fn deploy(place: &Place, how: &str) -> Timeline {
    let timeline = place.deploy();
    println!(
        "  deploy, {how}: all nodes Ready after {:.1} s, up after {:.1} s",
        timeline.end_of("node ready"),
        timeline.seconds()
    );
    timeline
}

fn cleanup(place: &Place, what: &str) {
    println!("  {what}: {:.1} s", place.cleanup());
}

/// What was said is so.
async fn assert_ready(place: &Place, kubeconfig: &str, count: usize) {
    let nodes = place
        .inside(
            0,
            &format!("kubectl --kubeconfig {kubeconfig} get nodes --no-headers"),
        )
        .await;
    assert_eq!(nodes.matches(" Ready ").count(), count, "{nodes}");
}
