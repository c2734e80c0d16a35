//! The server's side of a link: services that run there, and ports of it that lead elsewhere.

use anyhow::Context;
use clap::Args;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use stentor_rig::forward::Forward;
use stentor_rig::{Rig, Side};
use stentor_terminal::failure::CommandFailure;

/// Timeout of `--wait-port`.
const SERVE_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The services and ports of the server's side.
#[derive(Clone, Debug, Args)]
pub(in crate::commands) struct ServerSideArgs {
    /// Run this shell command on the server's side while the main command runs; may be repeated
    #[arg(long, value_name = "COMMAND")]
    pub(in crate::commands) serve: Vec<String>,
    /// Wait until a TCP port on the server's side listens before the command starts; may be repeated
    #[arg(long, value_name = "PORT")]
    pub(in crate::commands) wait_port: Vec<u16>,
    /// Forward a TCP port of the server's side to the same port of this machine, or to HOST:PORT; may be repeated
    #[arg(long, value_name = "PORT[=HOST:PORT]", value_parser = forward)]
    pub(in crate::commands) forward: Vec<(u16, String)>,
}

/// Running services, until this is dropped.
pub(in crate::commands) struct ServerSide {
    _forwards: Vec<Forward>,
    services: Vec<Child>,
}

impl ServerSideArgs {
    /// Starts the services, and waits until they listen.
    pub(in crate::commands) async fn start(&self, rig: &Rig) -> anyhow::Result<ServerSide> {
        let forwards: anyhow::Result<Vec<Forward>> =
            self.forward.iter().map(|(port, target)| open(rig, *port, target)).collect();
        let mut side = ServerSide { _forwards: forwards?, services: Vec::new() };
        for line in &self.serve {
            side.services.push(serve(rig, line)?);
        }
        self.wait_for_ports(rig, &mut side.services).await?;
        Ok(side)
    }

    async fn wait_for_ports(&self, rig: &Rig, services: &mut [Child]) -> anyhow::Result<()> {
        let started = Instant::now();
        for port in &self.wait_port {
            while !rig.listens(Side::Server, *port)? {
                for service in services.iter_mut() {
                    if let Some(status) = service.try_wait()? {
                        return Err(CommandFailure::not_done(format!(
                            "the service of --serve ended before it listened on port {port}: {status}"
                        ))
                        .into());
                    }
                }
                if started.elapsed() > SERVE_WITHIN {
                    let sentence = format!("nothing listens at port {port} of the server's side after 60 s");
                    return Err(CommandFailure::not_done(sentence).into());
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }
}

impl Drop for ServerSide {
    fn drop(&mut self) {
        self.services.iter_mut().for_each(end_of);
    }
}

/// Leads a port of the server's side to a host and port as seen from this process.
pub(in crate::commands) fn open(rig: &Rig, port: u16, target: &str) -> anyhow::Result<Forward> {
    Forward::open(rig, port, target).with_context(|| format!("port {port} cannot be led to {target}"))
}

fn serve(rig: &Rig, line: &str) -> anyhow::Result<Child> {
    let mut command = Command::new("sh");
    // Its output goes to standard error, because standard output belongs to the main command.
    command.args(["-c", &format!("exec 1>&2; {line}")]).stdin(Stdio::null());
    rig.spawn(Side::Server, command).with_context(|| format!("`{line}` cannot be started"))
}

fn end_of(service: &mut Child) {
    if let Some(process) = rustix::process::Pid::from_raw(service.id().cast_signed()) {
        // An error means that it has ended already, as intended.
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
    }
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(1) {
        if matches!(service.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let _ = service.kill();
    let _ = service.wait();
}

/// Reads `PORT` or `PORT=HOST:PORT`.
fn forward(text: &str) -> Result<(u16, String), String> {
    let (port, target) = text.split_once('=').map_or((text, None), |(port, target)| (port, Some(target)));
    let number =
        port.parse::<u16>().ok().filter(|port| *port > 0).ok_or("PORT is a number from 1 to 65535")?;
    match target {
        None => Ok((number, format!("127.0.0.1:{number}"))),
        Some(target) if target.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
            Ok((number, target.to_owned()))
        }
        Some(_) => Err("after = comes HOST:PORT".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forward_leads_to_this_machine_unless_told_otherwise() {
        assert_eq!(forward("8080"), Ok((8080, "127.0.0.1:8080".to_owned())));
        assert_eq!(forward("80=example.org:443"), Ok((80, "example.org:443".to_owned())));
        for wrong in ["", "0", "x", "80=", "80=host", "80=host:x", "70000"] {
            assert!(forward(wrong).is_err(), "{wrong}");
        }
    }
}
