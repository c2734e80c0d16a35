//! Our side of LSP-1: starts a subject, tells it what to do, waits for what it says, and ends it.

use super::protocol::{LINE_MAX_BYTES, Order, Report};
use super::{Definition, SubjectError};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long a subject may take for one order, unless it is told otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A subject that runs.
pub struct Host {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
    patience: Duration,
}

impl Host {
    /// Starts a subject in a process group of its own; its log goes to our standard error.
    pub fn start(definition: &Definition, patience: Duration) -> Result<Self, SubjectError> {
        let words = definition.words(&BTreeMap::new());
        let [program, arguments @ ..] = &words[..] else {
            return Err(SubjectError::Exchange(format!("{} says nothing about how it runs", definition.id)));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .process_group(0);
        if let Some(directory) = &definition.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn().map_err(SubjectError::io(format!("starting {program}")))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (orders, reports) = pipes.ok_or_else(|| SubjectError::Exchange("it has no pipes".into()))?;
        Ok(Self { child, orders, reports: BufReader::new(reports), patience })
    }

    /// Gives an order and waits for the report on it.
    pub async fn ask(&mut self, order: &Order) -> Result<Report, SubjectError> {
        self.tell(order).await?;
        let to = name(order);
        match tokio::time::timeout(self.patience, self.report(to)).await {
            Ok(Ok(Report::Error { text })) => Err(SubjectError::GaveUp(text)),
            Ok(report) => report,
            Err(_) => Err(SubjectError::Silent { to, seconds: self.patience.as_secs() }),
        }
    }

    /// Gives an order to which nothing is said.
    pub async fn tell(&mut self, order: &Order) -> Result<(), SubjectError> {
        let mut line =
            serde_json::to_string(order).map_err(|error| SubjectError::Exchange(error.to_string()))?;
        line.push('\n');
        let written = self.orders.write_all(line.as_bytes()).await;
        written.map_err(SubjectError::io(format!("telling the subject to {}", name(order))))
    }

    /// Tells it to stop, and waits for its end; what does not end is ended with everything that it started.
    pub async fn stop(mut self) -> Result<(Report, ExitStatus), SubjectError> {
        let report = self.ask(&Order::Stop).await;
        let ended = tokio::time::timeout(self.patience, self.child.wait()).await;
        let silent = SubjectError::Silent { to: "stop", seconds: self.patience.as_secs() };
        let Ok(status) = ended else {
            self.end().await;
            return Err(silent);
        };
        let status = status.map_err(SubjectError::io("waiting for the subject"))?;
        Ok((report?, status))
    }

    /// Ends it: politely, and after a second for good.
    pub async fn end(mut self) {
        let group = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let Some(group) = group else { return };
        // A group that is gone needs no signal.
        let _ = kill_process_group(group, Signal::TERM);
        if tokio::time::timeout(Duration::from_secs(1), self.child.wait()).await.is_err() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait().await;
        }
    }

    async fn report(&mut self, to: &'static str) -> Result<Report, SubjectError> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reports).take(LINE_MAX_BYTES as u64);
        let read = limited
            .read_until(b'\n', &mut line)
            .await
            .map_err(SubjectError::io("listening to the subject"))?;
        if read == 0 {
            return Err(SubjectError::GaveUp(format!("it ended when told to {to}")));
        }
        serde_json::from_slice(&line).map_err(|_| SubjectError::Babble {
            line: String::from_utf8_lossy(&line).trim().chars().take(80).collect(),
            wanted: "a report",
        })
    }
}

/// Makes the file of samples' path one that the subject finds from wherever it runs.
pub(crate) fn absolute(path: &Path) -> Result<std::path::PathBuf, SubjectError> {
    std::path::absolute(path).map_err(SubjectError::io(format!("{}", path.display())))
}

const fn name(order: &Order) -> &'static str {
    match order {
        Order::Hello => "say hello",
        Order::Prepare(_) => "prepare",
        Order::Arm(_) => "arm",
        Order::Go { .. } => "go",
        Order::Stop => "stop",
    }
}
