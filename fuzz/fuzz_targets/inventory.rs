//! Any bytes are an inventory with its variables, or a list of what is wrong with them. A NUL byte divides the two files.
#![no_main]

use hatchery_spec::{
    inventory::{Files, read},
    source::Input,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut files = bytes.splitn(2, |byte| *byte == 0);
    let hosts = Input::private("hosts.yml", files.next().unwrap_or_default());
    let vars = files.next().map(|bytes| Input::private("group_vars.yml", bytes));
    let reading = read(Files {
        hosts,
        vars,
        id: None,
    });
    hatchery_fuzz::check(&reading);
});
