//! The kernel's limit of inotify instances, which all machines share: systemd does not start without one.

use std::fs;

use crate::progress::Progress;

const LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";

/// A machine with pods needs about ten, and as many machines as a sandbox may have are to run.
const ENOUGH: u32 = 2048;

/// Raises the limit until the next boot, where it is lower and we may.
pub(crate) fn raise_limit(progress: &Progress) {
    let now = fs::read_to_string(LIMIT).ok();
    let now = now.and_then(|text| text.trim().parse::<u32>().ok());
    // Without the right to do so, a few machines will still do.
    if let Some(now) = now.filter(|now| *now < ENOUGH)
        && fs::write(LIMIT, ENOUGH.to_string()).is_ok()
    {
        progress.note(format!(
            "raised fs.inotify.max_user_instances from {now} to {ENOUGH} until the next boot: all machines share it"
        ));
    }
}
