//! Time to create, redeploy and remove clusters, compared with kubeadm and eggo on the same machines in one run.
//!
//! `cargo bench --bench deploy -- [WORD…]` measures only what is named: `1+1`, `3+2`, `classic`. Everything but the first
//! deploy on bare machines is measured `HATCHERY_ROUNDS` times (5); the medians are compared.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement may fail loudly"
)]

mod classic;
mod kubeadm;
mod median;
mod place;
mod prepared;
mod timeline;

use crate::{median::Times, place::Place, timeline::Timeline};

/// A cluster in which all machines are nodes.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    name: &'static str,
    machines: usize,
    masters: usize,
    /// The wanted ratio of kubeadm's time to ours.
    aim: f64,
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "1+1",
        machines: 2,
        masters: 1,
        aim: 1.8,
    },
    Shape {
        name: "3+2",
        machines: 5,
        masters: 3,
        aim: 2.75,
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

/// Deploys on bare machines, then repeatedly on machines that have all programs and images, and repeats the latter with
/// kubeadm.
async fn beside_kubeadm(shape: Shape) {
    let name = shape.name;
    let place = Place::new(shape).await;
    println!("{name} with set new, on {} machines", shape.machines);
    let bare = deploy(&place, "from bare machines");
    println!("{}", bare.table());
    let mut cleanups = Times::new("cleanup");
    cleanups.add(place.cleanup().seconds());

    prepared::put_in_place(&place).await;
    let mut ready = Times::new("deploy, files and images in place: all nodes Ready");
    let mut up = Times::new("deploy, files and images in place: up");
    let mut unchanged = Times::new("deploy again");
    for round in 0..median::rounds() {
        let ours = deploy(&place, "files and images in place");
        ready.add(ours.end_of("node ready"));
        up.add(ours.seconds());
        if round == 0 {
            println!("{}", ours.table());
            assert_ready(&place, "/etc/kubernetes/admin.conf", shape.machines).await;
        }
        unchanged.add(place.deploy().seconds());
        cleanups.add(place.cleanup().seconds());
    }

    kubeadm::outfit(&place, shape).await;
    let mut theirs = Times::new("kubeadm, files and images in place: all nodes Ready");
    for round in 0..median::rounds() {
        if round > 0 {
            kubeadm::reset(&place).await;
        }
        let took = kubeadm::make(&place, shape).await;
        println!("  kubeadm: {:.1} s ({})", took.ready, took.steps);
        theirs.add(took.ready);
    }
    for times in [&ready, &up, &unchanged, &cleanups, &theirs] {
        println!("  {times}");
    }
    println!(
        "  distribution to bare machines adds {:.1} s",
        bare.seconds() - up.median()
    );
    println!(
        "  {name}: all nodes Ready {:.2} times as fast as kubeadm (aim: {})\n",
        theirs.median() / ready.median(),
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

/// Fails unless all nodes are Ready.
async fn assert_ready(place: &Place, kubeconfig: &str, count: usize) {
    let nodes = place
        .inside(
            0,
            &format!("kubectl --kubeconfig {kubeconfig} get nodes --no-headers"),
        )
        .await;
    assert_eq!(nodes.matches(" Ready ").count(), count, "{nodes}");
}
