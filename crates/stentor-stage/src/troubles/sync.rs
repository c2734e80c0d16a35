//! Syncs that fail: strace attaches to the running server and answers its fsyncs with an error of the disk.

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

const CALLS: &str = "fsync,fdatasync,sync_file_range,msync";
const FAILED: &str = "(INJECTED)";

/// Returns why no sync can be made to fail here.
pub(super) fn obstacle() -> Option<String> {
    let tried =
        Command::new("strace").args(["-qq", "-e", "trace=getpid", "true"]).stdin(Stdio::null()).output();
    match tried {
        Err(_) => Some("strace is missing: install strace".to_owned()),
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("strace may not trace here ({said}): allow ptrace (CAP_SYS_PTRACE)"))
        }
    }
}

/// A tracer that makes every sync of a process fail while it is attached.
pub(super) struct SyncFailures {
    tracer: Child,
    reader: Option<JoinHandle<()>>,
    failed: Arc<AtomicU64>,
    gone: Arc<AtomicBool>,
}

impl SyncFailures {
    /// Attaches to all threads of a process.
    pub(super) fn attach(process: u32) -> anyhow::Result<Self> {
        let (trace, inject) = (format!("trace={CALLS}"), format!("inject={CALLS}:error=EIO"));
        let mut tracer = Command::new("strace")
            .args(["-f", "-e", &trace, "-e", "signal=none", "-e", &inject, "-p", &process.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("strace cannot be started")?;
        let said = tracer.stderr.take().context("strace cannot be listened to")?;
        let (failed, gone) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (failed.clone(), gone.clone());
        // It must be listened to, or it stops when its pipe is full, and the server with it.
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                // Nothing else is read on the strength of this number, so its own order is enough.
                count.fetch_add(u64::from(line.contains(FAILED)), Ordering::Relaxed);
            }
            end.store(true, Ordering::Relaxed);
        });
        Ok(Self { tracer, reader: Some(reader), failed, gone })
    }

    /// Returns true if a sync has failed yet.
    pub(super) fn has_failed_one(&self) -> bool {
        self.failed.load(Ordering::Relaxed) > 0
    }

    /// Detaches from the process, which continues normally. Fails if no sync has failed.
    pub(super) fn detach(&mut self) -> anyhow::Result<()> {
        // Before it is ended here, which makes it gone as well. Relaxed: the reader is joined before the count is judged.
        let was_gone = self.gone.load(Ordering::Relaxed);
        self.end()?;
        anyhow::ensure!(!was_gone, "strace ended by itself");
        anyhow::ensure!(self.has_failed_one(), "strace made no sync fail");
        Ok(())
    }

    fn end(&mut self) -> anyhow::Result<()> {
        if let Some(pid) = Pid::from_raw(self.tracer.id().cast_signed()) {
            // At this signal the tracer detaches from its processes. It may have ended already.
            let _ = kill_process(pid, Signal::INT);
        }
        // The tracer first: its end closes the pipe, which ends the reader.
        self.tracer.wait().context("strace cannot be waited for")?;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        Ok(())
    }
}

impl Drop for SyncFailures {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
