//! `stentor lab load`: the sender alone, as a process of its own, so that the system counts its processor time.

use anyhow::Context;
use clap::Args;
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::load;
use stentor_lab::load::Endpoint;
use stentor_terminal::output::Output;

/// Send APNs requests to one server, each to a different token
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab load --address 127.0.0.1:9443 --ca emulator/ca.pem
  stentor lab load --address 127.0.0.1:9443 --requests 100000 --connections 1 --json")]
pub(crate) struct LoadArgs {
    /// Address of the server
    #[arg(long, value_name = "ADDRESS")]
    address: SocketAddr,
    /// The certificate authority of the server (localhost); without it there is no TLS
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Requests in all
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    requests: u64,
    /// Connections at the same time
    #[arg(long, default_value_t = 4, value_name = "N")]
    connections: usize,
    /// Requests in flight on each connection
    #[arg(long, default_value_t = 250, value_name = "N")]
    streams: usize,
}

impl LoadArgs {
    /// Sends on this thread alone, as other load generators do by default.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        stentor_stage::emulated::refuse()?;
        let load = self.load()?;
        let sending = std::thread::spawn(move || -> anyhow::Result<load::LoadResult> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(load.run())?)
        });
        let outcome = sending.join().map_err(|_| anyhow::anyhow!("the sender panicked"))??;
        let rate = outcome.succeeded as f64 / outcome.wall_seconds.max(1e-9);
        let object = json!({
            "succeeded": outcome.succeeded,
            "failed": outcome.failed,
            "wall_seconds": outcome.wall_seconds,
            "requests_per_second": rate,
        });
        output
            .result(&object, || format!("{} requests in {:.3} s", outcome.succeeded, outcome.wall_seconds))?;
        Ok(if outcome.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn load(&self) -> anyhow::Result<load::LoadSpec> {
        let pem = match &self.ca {
            Some(path) => Some(std::fs::read(path).with_context(|| format!("{}", path.display()))?),
            None => None,
        };
        let endpoint = Endpoint {
            server_name: Some("localhost".into()),
            cleartext: pem.is_none(),
            roots: load::Roots::Pem(pem.unwrap_or_default().into()),
            ..Endpoint::new(self.address.ip().to_string(), self.address.port())
        };
        let Self { requests, connections, streams, .. } = *self;
        Ok(load::LoadSpec { endpoint, requests, connections, streams })
    }
}
