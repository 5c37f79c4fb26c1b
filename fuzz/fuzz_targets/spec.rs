//! Any bytes are a deploy file or a list of what is wrong with them.
#![no_main]

use hatchery_spec::{reading::read, source::Input};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let reading = read(Input {
        name: "deploy.yaml",
        bytes,
        others_can_read: true,
    });
    hatchery_fuzz::check(&reading);
});
