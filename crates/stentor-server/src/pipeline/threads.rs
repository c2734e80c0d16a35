//! Threads of their own for what moves audiences, so that a caller or a single message never waits behind a chunk of work
//! in the same queue of tasks.

use std::num::NonZero;

use tokio::runtime::{Builder, Handle, Runtime};

/// How much these threads give way to the others when processors are short (nice(2)).
const GIVING_WAY: i32 = 5;

/// The threads; they end when this is dropped, whatever their tasks are at.
pub struct Threads(Option<Runtime>);

impl Threads {
    /// Starts as many as there are processors.
    pub(crate) fn start() -> std::io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, NonZero::get);
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(count).thread_name("stentor-bulk").on_thread_start(give_way).enable_all();
        Ok(Self(Some(builder.build()?)))
    }

    /// Returns the way to hand tasks to them.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.0.as_ref().map(|runtime| runtime.handle().clone())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Waiting for them here would hold up the thread of another runtime.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[cfg(target_os = "linux")]
fn give_way() {
    // Always allowed, and where it is not, audiences only compete harder.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), GIVING_WAY);
}

#[cfg(not(target_os = "linux"))]
const fn give_way() {}
