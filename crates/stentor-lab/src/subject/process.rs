//! Our side of LSP-1: starts a subject, sends orders, waits for reports, and ends it.

use super::protocol::{Arm, CLOCK, ExchangeSchedule, LINE_MAX_BYTES, Report, SubjectOrder, VERSION};
use super::{Definition, SubjectError};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// Default timeout of an order.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Polling interval for the end of a subject.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A running subject.
pub struct SubjectProcess {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
    patience: Duration,
}

impl SubjectProcess {
    /// Starts a subject in its own process group; its log goes to our standard error.
    pub fn start(definition: &Definition, patience: Duration) -> Result<Self, SubjectError> {
        let mut command = Self::command(definition)?;
        let program = command.get_program().to_string_lossy().into_owned();
        Self::adopt(
            command.spawn().map_err(SubjectError::io(format!("starting {program}, the program of `run`")))?,
            patience,
        )
    }

    /// Returns the command that starts a subject with the process group and pipes that [`Self::adopt`] requires.
    pub fn command(definition: &Definition) -> Result<Command, SubjectError> {
        let words = definition.words(&BTreeMap::new());
        let [program, arguments @ ..] = &words[..] else {
            return Err(SubjectError::Exchange(format!("{} says nothing about how it runs", definition.id)));
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        if let Some(directory) = &definition.directory {
            command.current_dir(directory);
        }
        Ok(command)
    }

    /// Takes over a running subject, which must have its own process group and pipes.
    pub fn adopt(mut child: Child, patience: Duration) -> Result<Self, SubjectError> {
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (orders_pipe, reports) = pipes.ok_or_else(|| SubjectError::Exchange("it has no pipes".into()))?;
        let orders_pipe = ChildStdin::from_std(orders_pipe).map_err(SubjectError::io("its pipes"))?;
        let reports = ChildStdout::from_std(reports).map_err(SubjectError::io("its pipes"))?;
        Ok(Self { child, orders: orders_pipe, reports: BufReader::new(reports), patience })
    }

    /// Returns its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Orders a greeting; returns the versions of its software.
    pub async fn hello(&mut self) -> Result<BTreeMap<String, String>, SubjectError> {
        match self.ask(&SubjectOrder::Hello).await? {
            Report::Hello { lsp: VERSION, versions, clock } if clock == CLOCK => Ok(versions),
            Report::Hello { lsp, clock, .. } => {
                Err(SubjectError::Wrong(format!("it speaks version {lsp} with the clock {clock:?}")))
            }
            other => Err(other.instead_of("hello")),
        }
    }

    /// Orders it to get ready for a schedule, which `go` starts.
    pub async fn arm(
        &mut self,
        schedule: ExchangeSchedule,
        count: u64,
        out: &Path,
    ) -> Result<(), SubjectError> {
        let out = absolute(out)?;
        match self.ask(&SubjectOrder::Arm(Arm { schedule, count, out })).await? {
            Report::Armed => Ok(()),
            other => Err(other.instead_of("armed")),
        }
    }

    /// Sends an order and waits for its report.
    pub async fn ask(&mut self, order: &SubjectOrder) -> Result<Report, SubjectError> {
        self.ask_within(order, self.patience).await
    }

    /// Sends an order and waits for its report, with a timeout for orders that take longer.
    pub async fn ask_within(
        &mut self,
        order: &SubjectOrder,
        patience: Duration,
    ) -> Result<Report, SubjectError> {
        self.send(order).await?;
        self.hear(order, patience).await
    }

    /// Waits for the report on an order sent before.
    pub async fn hear(&mut self, order: &SubjectOrder, patience: Duration) -> Result<Report, SubjectError> {
        let to = name(order);
        match tokio::time::timeout(patience, self.report(to)).await {
            Ok(Ok(Report::Error { text })) => Err(SubjectError::GaveUp(text)),
            Ok(report) => report,
            Err(_) => Err(SubjectError::Silent { to, seconds: patience.as_secs() }),
        }
    }

    /// Sends an order without a report.
    pub async fn send(&mut self, order: &SubjectOrder) -> Result<(), SubjectError> {
        let mut line =
            serde_json::to_string(order).map_err(|error| SubjectError::Exchange(error.to_string()))?;
        line.push('\n');
        let written = self.orders.write_all(line.as_bytes()).await;
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => ended(name(order)),
            _ => SubjectError::io(format!("sending the subject the order to {}", name(order)))(error),
        })
    }

    /// Orders it to stop, and waits for its end. After the timeout it is ended with all its child processes.
    pub async fn stop(mut self) -> Result<(Report, ExitStatus), SubjectError> {
        let report = self.ask(&SubjectOrder::Stop).await;
        match self.wait(self.patience).await? {
            Some(status) => Ok((report?, status)),
            None => {
                let seconds = self.patience.as_secs();
                self.end().await;
                Err(SubjectError::Silent { to: "stop", seconds })
            }
        }
    }

    /// Stops it after success, ends it after a failure.
    pub(crate) async fn stop_after<T, E: From<SubjectError>>(
        self,
        done: Result<T, E>,
    ) -> Result<(T, Report, ExitStatus), E> {
        match done {
            Ok(done) => {
                let (report, status) = self.stop().await?;
                Ok((done, report, status))
            }
            Err(failure) => {
                self.end().await;
                Err(failure)
            }
        }
    }

    /// Terminates it, and kills it after a second.
    pub async fn end(mut self) {
        let Some(group) = self.group() else { return };
        // A process group that no longer exists needs no signal.
        let _ = kill_process_group(group, Signal::TERM);
        if !matches!(self.wait(Duration::from_secs(1)).await, Ok(Some(_))) {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait();
        }
    }

    /// Kills it immediately.
    pub async fn kill(mut self) {
        let Some(group) = self.group() else { return };
        // A process group that no longer exists needs no signal.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.wait(self.patience).await;
    }

    /// Waits for its end; `None` if it does not end in time.
    async fn wait(&mut self, patience: Duration) -> Result<Option<ExitStatus>, SubjectError> {
        let began = Instant::now();
        loop {
            let status = self.child.try_wait().map_err(SubjectError::io("waiting for the subject"))?;
            if status.is_some() || began.elapsed() >= patience {
                return Ok(status);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns its process group while it runs; afterwards the number may belong to another group.
    fn group(&mut self) -> Option<Pid> {
        let is_over = matches!(self.child.try_wait(), Ok(Some(_)));
        Pid::from_raw(self.child.id().cast_signed()).filter(|_| !is_over)
    }

    async fn report(&mut self, to: &'static str) -> Result<Report, SubjectError> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reports).take(LINE_MAX_BYTES as u64);
        let read = limited
            .read_until(b'\n', &mut line)
            .await
            .map_err(SubjectError::io("listening to the subject"))?;
        if read == 0 {
            return Err(ended(to));
        }
        serde_json::from_slice(&line).map_err(|_| SubjectError::Babble {
            line: String::from_utf8_lossy(&line).trim().chars().take(80).collect(),
            wanted: "a report",
        })
    }
}

impl Drop for SubjectProcess {
    fn drop(&mut self) {
        if let Some(group) = self.group() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn ended(to: &str) -> SubjectError {
    SubjectError::GaveUp(format!("it ended at the order to {to}; its standard error is printed above"))
}

/// Makes the path of the sample file absolute, so that it is valid in the subject's directory.
pub(crate) fn absolute(path: &Path) -> Result<std::path::PathBuf, SubjectError> {
    std::path::absolute(path).map_err(SubjectError::io(format!("{}", path.display())))
}

const fn name(order: &SubjectOrder) -> &'static str {
    match order {
        SubjectOrder::Hello => "say hello",
        SubjectOrder::Prepare(_) => "prepare",
        SubjectOrder::Arm(_) => "arm",
        SubjectOrder::Go { .. } => "go",
        SubjectOrder::Stop => "stop",
    }
}
