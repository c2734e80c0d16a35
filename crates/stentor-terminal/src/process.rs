//! This process and the operating system: signals, limits, its parent.

use crate::output::note;
use anyhow::Context;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

/// A server that may open fewer files refuses callers long before its own limit of connections (10,000 by default).
pub const FEW_FILES: u64 = 4096;

/// Completes when the process is asked to end; a second request ends it at once.
pub fn asked_to_end() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    // Taken now and not when the future is first polled: a signal between the two would end the process at once.
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            note("stentor: asked twice, ending at once");
            crate::logging::finish();
            std::process::exit(130);
        });
    })
}

/// Raises the soft limit of open files to the hard one; returns what is in force now.
pub fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    now.unwrap_or(u64::MAX)
}

/// Takes memory in small pages: huge ones are zeroed two megabytes at a time, and a server that gives memory back and
/// takes it again pays for that and holds half as much again (docs/performance.md).
pub fn use_small_pages() {
    // Where the system cannot do that, the server only takes more memory.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Asks to be ended when the process that started this one ends, however it ends.
pub fn end_with_parent() {
    // Where the system cannot do that, the parent still ends its children itself.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}
