//! This process and the operating system: signals, limits, its parent.

use crate::output::note;
use anyhow::Context;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

/// Lowest sensible limit of open files: below it a server refuses callers long before its own limit of connections (10,000 by default).
pub const FEW_FILES: u64 = 4096;

/// Completes at a signal to end the process; a second signal ends it at once.
pub fn asked_to_end() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    // Registered now and not at the first poll: a signal in between would end the process at once.
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
            note("stentor: second signal, ending at once");
            crate::logging::finish();
            std::process::exit(130);
        });
    })
}

/// Completes when the standard input ends, as it does when the process that feeds it is gone.
pub fn input_ended() -> impl Future<Output = ()> + Send + 'static {
    let (ended, waiting) = tokio::sync::oneshot::channel();
    // A thread of its own: a read on the runtime would hold up the end of the process.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    });
    async move {
        let _ = waiting.await;
    }
}

/// Raises the soft limit of open files to the hard one; returns the limit in force.
pub fn raise_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    now.unwrap_or(u64::MAX)
}

/// Disables huge pages for this process. Huge pages are zeroed two megabytes at a time, which costs a server that returns memory and takes
/// it again time, and half as much memory again (docs/performance.md).
pub fn use_small_pages() {
    // If the system cannot do that, the server only takes more memory.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Lets the system kill this process when its parent ends in any way.
pub fn end_with_parent() {
    // If the system cannot do that, the parent still ends its children itself.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}
