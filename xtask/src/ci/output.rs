//! Runs a command and forwards its output at once.

use std::io::{self, IsTerminal, PipeReader, Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use super::usage;

/// Limit of pieces that wait to be forwarded; beyond it a slow terminal slows the command, as it would without this program.
const WAITING_MAX_PIECES: usize = 64;
/// Longest silence after the end of the command: a process that it started may hold its output open for ever.
const QUIET: Duration = Duration::from_secs(2);

/// A command that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedCommand {
    pub(crate) status: ExitStatus,
    /// Processor seconds at the end of its output, with those of all processes for which it waited.
    pub(crate) processor_seconds: f64,
}

/// Runs a command: both of its outputs go to `out` as they come, and each whole line to `note`.
pub(crate) fn forward(
    mut command: Command,
    out: &mut impl Write,
    note: impl FnMut(&str),
) -> anyhow::Result<EndedCommand> {
    // One pipe for both outputs: cargo names the target on one, the target's tests print on the other, and their order matters.
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    command.env("CARGO_TERM_COLOR", if io::stdout().is_terminal() { "always" } else { "never" });
    let mut child = command.spawn()?;
    // It holds the write end of the pipe, so that the reader would never see the end of the output.
    drop(command);
    let (sender, pieces) = mpsc::sync_channel(WAITING_MAX_PIECES);
    std::thread::spawn(move || read(reader, &sender));
    let mut lines = LineSplitter { rest: Vec::new(), note };
    let mut processor_seconds = 0.0;
    while let Some(piece) = next(&pieces, || has_ended(&mut child, &mut processor_seconds))? {
        out.write_all(&piece)?;
        out.flush()?;
        lines.feed(&piece);
    }
    lines.end();
    has_ended(&mut child, &mut processor_seconds)?;
    Ok(EndedCommand { status: child.wait()?, processor_seconds })
}

/// Returns true if a process has ended, and notes its processor time until then. The kernel counts it until the process is waited for.
fn has_ended(child: &mut Child, processor_seconds: &mut f64) -> anyhow::Result<bool> {
    *processor_seconds = usage::processor_seconds_of(child.id()).max(*processor_seconds);
    Ok(child.try_wait()?.is_some())
}

/// Reads until the end, or until the receiver is dropped.
fn read(mut reader: PipeReader, pieces: &SyncSender<Vec<u8>>) {
    let mut buffer = vec![0; 64 * 1_024];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        if pieces.send(buffer[..count].to_vec()).is_err() {
            return;
        }
    }
}

/// Returns the next piece; `None` at the end.
fn next(
    pieces: &Receiver<Vec<u8>>,
    mut has_ended: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<Option<Vec<u8>>> {
    loop {
        match pieces.recv_timeout(QUIET) {
            Ok(piece) => return Ok(Some(piece)),
            Err(RecvTimeoutError::Timeout) if !has_ended()? => {}
            Err(_) => return Ok(None),
        }
    }
}

/// Splits pieces into lines.
struct LineSplitter<F> {
    rest: Vec<u8>,
    note: F,
}

impl<F: FnMut(&str)> LineSplitter<F> {
    fn feed(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            (self.note)(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
        }
    }

    /// Reports the rest after the last line break as a line.
    fn end(&mut self) {
        if !self.rest.is_empty() {
            (self.note)(&String::from_utf8_lossy(&std::mem::take(&mut self.rest)));
        }
    }
}

#[cfg(test)]
mod tests;
