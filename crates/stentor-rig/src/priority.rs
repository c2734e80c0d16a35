//! The place of a thread in the line of those that want to run.

use crate::kernel;

/// The highest priority of a process: probes measure the link, not their own scheduling.
const FIRST_IN_LINE: i32 = -20;

/// Puts the calling thread ahead of others, where that is allowed.
pub(crate) fn step_forward() {
    if kernel::run_first().is_err() {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), FIRST_IN_LINE);
    }
}
