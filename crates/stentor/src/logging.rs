//! The server's log: to standard error, as text or as JSON lines.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Begins to log. A filter that cannot be understood falls back to `info`.
pub(crate) fn start(level: &str, json: bool) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    // A second subscriber in one process changes nothing.
    let _ = if json { log.json().finish().try_init() } else { log.finish().try_init() };
}
