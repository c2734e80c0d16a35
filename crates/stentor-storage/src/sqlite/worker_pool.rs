//! Threads for long work, which yield to all others when processors are scarce.

use stentor_core::ports::store::StoreError;
use tokio::runtime::{Builder, Handle, Runtime};

/// Their niceness (nice(2)): a caller's dry run gets the processor time that look-ups, commits and sending leave.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// A bounded worker pool; threads come when needed and end when idle.
pub(super) struct WorkerPool(Option<Runtime>);

impl WorkerPool {
    /// Creates an empty pool of at most `max_threads` threads.
    pub(super) fn new(max_threads: usize) -> Result<Self, StoreError> {
        let mut builder = Builder::new_current_thread();
        builder
            .max_blocking_threads(max_threads.max(1))
            .thread_name("stentor-long")
            .on_thread_start(give_way);
        let runtime = builder.build().map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self(Some(runtime)))
    }

    /// Returns the way to hand work to it; none once it ends.
    pub(super) fn handle(&self) -> Option<&Handle> {
        self.0.as_ref().map(Runtime::handle)
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // Waiting for them here would hold up the thread of another runtime.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[cfg(target_os = "linux")]
fn give_way() {
    // Always allowed, and where it is not, long reads only compete harder.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
}

#[cfg(not(target_os = "linux"))]
const fn give_way() {}
