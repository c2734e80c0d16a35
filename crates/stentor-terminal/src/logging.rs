//! The server's log: to standard error, as text or as JSON lines, by a thread of its own.
//!
//! Logging only hands a line over. A failing standard error, or a pipe without a reader, neither ends nor delays the caller. Lines that
//! cannot be written are lost, and their number is logged once writing works again. Untrusted input can neither forge a line nor make one
//! without end, however it is logged.

mod buffer;
mod lines;

use buffer::LogBuffer;
use lines::{BoundedFields, LineKind, safe_line};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::panic::PanicHookInfo;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Time that an ending process allows for its last lines.
const LAST_LINES_MAX: Duration = Duration::from_secs(1);

static BUFFER: OnceLock<Arc<LogBuffer>> = OnceLock::new();

/// Starts the log. An invalid filter falls back to `info`.
pub fn start(level: &str, json: bool) -> io::Result<()> {
    let filter = level.parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO));
    let tell_lost = |lines| tracing::warn!(lines, "lines of the log were lost: they could not be written");
    let buffer = LogBuffer::start(standard_error(), tell_lost)?;
    let lines = buffer.clone();
    let registry = tracing_subscriber::registry().with(filter);
    // A second subscriber in one process has no effect.
    let begun = match json {
        true => registry.with(json_layer(lines)).try_init(),
        false => registry.with(text_layer(lines)).try_init(),
    };
    if begun.is_ok() && BUFFER.set(buffer).is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
    Ok(())
}

/// Writes lines for people.
fn text_layer<S: Subscriber + for<'span> LookupSpan<'span>>(lines: Arc<LogBuffer>) -> impl Layer<S> {
    let writer = move || LineWriter { lines: lines.clone(), kind: LineKind::Text };
    let log = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
    log.log_internal_errors(false).fmt_fields(BoundedFields)
}

/// Writes lines for programs.
fn json_layer<S: Subscriber + for<'span> LookupSpan<'span>>(lines: Arc<LogBuffer>) -> impl Layer<S> {
    let writer = move || LineWriter { lines: lines.clone(), kind: LineKind::Json };
    let log = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
    log.log_internal_errors(false).json()
}

/// Hands over a line that is not part of the log but takes the same path; returns false if there is no log.
pub fn hand_over(line: &str) -> bool {
    let buffer = BUFFER.get();
    buffer.into_iter().for_each(|buffer| buffer.put(format!("{line}\n").as_bytes()));
    buffer.is_some()
}

/// Flushes the last lines when it is dropped, within at most a second.
pub struct LastLines;

impl Drop for LastLines {
    fn drop(&mut self) {
        finish();
    }
}

/// Waits until all lines are written, for at most a second.
pub fn finish() {
    BUFFER.get().into_iter().for_each(|buffer| buffer.wait(LAST_LINES_MAX));
}

/// Returns standard error as a file, because a write through the library's handle holds a lock for which others wait.
fn standard_error() -> Box<dyn Write + Send> {
    match io::stderr().as_fd().try_clone_to_owned() {
        Ok(file) => Box::new(File::from(file)),
        Err(_) => Box::new(io::stderr()),
    }
}

/// Logs a panic: the default hook writes to standard error itself, and may block there forever.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let why = panic.payload_as_str().unwrap_or("no word why");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or_default();
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        tracing::error!(thread, place, why, trace = trace.to_string(), "a panic");
    } else {
        tracing::error!(thread, place, why, "a panic");
    }
}

/// A line under construction.
struct LineWriter {
    lines: Arc<LogBuffer>,
    kind: LineKind,
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.put(&safe_line(line, self.kind));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
