//! A sink as a process of its own.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use stentor_stage::child_process::{ChildProcess, ResourceUsage};

/// A running sink.
pub(super) struct Sink {
    child: ChildProcess,
    /// Address of the sink.
    pub(super) address: SocketAddr,
    /// Certificate authority of the sink.
    pub(super) ca: PathBuf,
}

impl Sink {
    /// Starts a sink that allows `streams` streams per connection, with all its files in `directory`.
    pub(super) async fn start(directory: &Path, streams: usize) -> anyhow::Result<Self> {
        let (ready, ca) = (directory.join("sink.ready"), directory.join("ca"));
        let arguments: Vec<OsString> = vec![
            "emulate".into(),
            "sink".into(),
            "--ca-dir".into(),
            ca.clone().into(),
            "--streams".into(),
            streams.to_string().into(),
            "--ready-file".into(),
            ready.clone().into(),
            "--end-with-parent".into(),
        ];
        let mut child = ChildProcess::start("sink", &arguments, &directory.join("sink.log"))?;
        let facts = child.ready(&ready).await?;
        let address = facts["address"].as_str().unwrap_or_default().parse()?;
        Ok(Self { child, address, ca: ca.join("ca.pem") })
    }

    /// Returns the sink's usage of the machine so far.
    pub(super) fn usage(&mut self) -> ResourceUsage {
        self.child.usage()
    }

    /// Ends it.
    pub(super) fn stop(self) {
        self.child.terminate();
    }
}
