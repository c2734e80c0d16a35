//! Separate threads for the work on audiences, so that a caller or a single message never waits behind a chunk of work in the same task
//! queue.

use std::num::NonZero;

use tokio::runtime::{Builder, Handle, Runtime};

/// Nice value of these threads, by which they yield when processors are short (nice(2)).
const GIVING_WAY: i32 = 5;

/// The threads; dropping this ends them regardless of running tasks.
pub struct Threads(Option<Runtime>);

impl Threads {
    /// Starts one thread for each processor.
    pub(crate) fn start() -> std::io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, NonZero::get);
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(count).thread_name("stentor-bulk").on_thread_start(give_way).enable_all();
        Ok(Self(Some(builder.build()?)))
    }

    /// Returns the handle to spawn tasks on them.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.0.as_ref().map(|runtime| runtime.handle().clone())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Waiting for them here would block a thread of another runtime.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[cfg(target_os = "linux")]
fn give_way() {
    // Lowering the priority is always allowed; if it fails, audiences only compete harder.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), GIVING_WAY);
}

#[cfg(not(target_os = "linux"))]
const fn give_way() {}
