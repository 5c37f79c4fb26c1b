//! The images of both systems come at once, also to an engine that has neither.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may fail loudly"
)]

use std::time::Duration;

use hatchery_sandbox::{docker, engine, fixtures, image, progress::Progress, settings::System};

#[tokio::test]
async fn both_systems_come_to_an_engine_that_has_neither() {
    let systems = [System::Debian, System::Rpm];
    let names = systems.map(System::fixture);
    let fixtures = fixtures::ensure(&names).await.unwrap();
    engine::ensure(&Progress::stderr()).await.unwrap();
    image::remove_unused().await.unwrap();

    let silent = Progress::silent();
    let ensure = image::ensure(&systems, &fixtures, &silent);
    let images = tokio::time::timeout(Duration::from_secs(120), ensure).await;
    let images = images.expect("a lock is waited for that nobody else holds");
    let _images = images.unwrap();
    for system in systems {
        let tag = image::tag(system, &fixtures).unwrap();
        let found = docker::run(&["images", "--quiet", &tag]).await.unwrap();
        assert!(!found.trim().is_empty(), "{tag} is not there");
    }
}
