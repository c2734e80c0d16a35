//! Runs a command and hands on what it prints, as it comes.

use std::io::{self, IsTerminal, PipeReader, Read, Write};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// Pieces that may wait to be handed on; a terminal that is slow then slows the command, as without us.
const WAITING_MAX_PIECES: usize = 64;
/// How long nothing may come after the command has ended: what it started may hold its output open for ever.
const QUIET: Duration = Duration::from_secs(2);

/// Runs a command: both of its outputs go to `out` as they come, and each whole line to `note`. Returns how it
/// ended.
pub(crate) fn forward(
    mut command: Command,
    out: &mut impl Write,
    note: impl FnMut(&str),
) -> anyhow::Result<ExitStatus> {
    // One pipe for both outputs: cargo names on one the target whose tests print on the other, and the order counts.
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    command.env("CARGO_TERM_COLOR", if io::stdout().is_terminal() { "always" } else { "never" });
    let mut child = command.spawn()?;
    // It holds the pipe's other end, and nobody would see the output's end.
    drop(command);
    let (sender, pieces) = mpsc::sync_channel(WAITING_MAX_PIECES);
    std::thread::spawn(move || read(reader, &sender));
    let mut lines = LineSplitter { rest: Vec::new(), note };
    while let Some(piece) = next(&pieces, || Ok(child.try_wait()?.is_some()))? {
        out.write_all(&piece)?;
        out.flush()?;
        lines.feed(&piece);
    }
    lines.end();
    Ok(child.wait()?)
}

/// Reads until the end, or until nobody wants more.
fn read(mut reader: PipeReader, pieces: &SyncSender<Vec<u8>>) {
    let mut buffer = vec![0; 64 * 1_024];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        if pieces.send(buffer[..count].to_vec()).is_err() {
            return;
        }
    }
}

/// Returns the next piece; `None` when there is none to come.
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

/// Makes lines of pieces.
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

    /// Takes what came after the last end of a line as a line.
    fn end(&mut self) {
        if !self.rest.is_empty() {
            (self.note)(&String::from_utf8_lossy(&std::mem::take(&mut self.rest)));
        }
    }
}

#[cfg(test)]
mod tests;
