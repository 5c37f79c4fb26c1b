//! The script that is sent to a machine before every list of operations.

use std::sync::LazyLock;

use crate::package_manager;

/// One file for each subject. `start.sh` sets what the others read, so it comes first; the others only define
/// functions, as do those of package managers. `dev/check-scripts` reads this list too.
const PARTS: [&str; 28] = [
    include_str!("prelude/start.sh"),
    include_str!("prelude/report.sh"),
    include_str!("prelude/program.sh"),
    include_str!("prelude/lock.sh"),
    include_str!("prelude/sweep.sh"),
    include_str!("prelude/record.sh"),
    include_str!("prelude/operation.sh"),
    include_str!("prelude/place.sh"),
    include_str!("prelude/file.sh"),
    include_str!("prelude/directory.sh"),
    include_str!("prelude/unit.sh"),
    include_str!("prelude/kernel.sh"),
    include_str!("prelude/hosts.sh"),
    include_str!("prelude/hostname.sh"),
    include_str!("prelude/firewall.sh"),
    include_str!("prelude/firewalld.sh"),
    include_str!("prelude/user.sh"),
    include_str!("prelude/packages.sh"),
    include_str!("prelude/packages_transaction.sh"),
    include_str!("prelude/packages_configuration.sh"),
    include_str!("prelude/packages_script_effects.sh"),
    include_str!("prelude/packages_services.sh"),
    include_str!("prelude/packages_undo.sh"),
    include_str!("prelude/image.sh"),
    include_str!("prelude/script.sh"),
    include_str!("prelude/task.sh"),
    include_str!("prelude/undo.sh"),
    include_str!("prelude/managed.sh"),
];

/// All parts and package managers.
pub(super) static PRELUDE: LazyLock<String> = LazyLock::new(|| {
    let parts = PARTS.into_iter().chain(package_manager::functions());
    package_manager::lists() + &without_comments(parts)
});

/// What is explained to us need not travel.
pub(crate) fn without_comments<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts
        .flat_map(str::lines)
        .filter(|line| !line.trim_start().starts_with("# ") && !line.trim().is_empty())
        .fold(String::new(), |text, line| text + line + "\n")
}
