//! The subject's side of LSP-1: reads orders, plays a half, writes reports.

mod exchanges;

use super::dialect::SubjectDialect;
use super::protocol::{Arm, CLOCK, LINE_MAX_BYTES, Prepare, Report, SubjectOrder, SubjectRole, VERSION};
use super::sample::{self, ClientSample};
use super::server::{Behaviour, SubjectServer};
use super::setup::SubjectSetup;
use super::{ABILITIES, BUILT_IN, SubjectError};
use exchanges::ClientHalf;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Plays a dialect until the order `stop` or the end of the orders.
pub async fn speak(
    dialect: SubjectDialect,
    behaviour: Behaviour,
    order_lines: impl AsyncBufRead + Unpin,
    mut reports: impl AsyncWrite + Unpin,
) -> Result<(), SubjectError> {
    let mut player = Player { dialect, behaviour, part: SpeakerPart::None };
    let mut order_lines = order_lines;
    while let Some(order) = next_order(&mut order_lines).await? {
        let is_last = order == SubjectOrder::Stop;
        let report = match player.play(order).await {
            Ok(report) => report,
            Err(error) => Some(Report::Error { text: error.to_string() }),
        };
        if let Some(report) = report {
            say(&mut reports, &report).await?;
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

async fn next_order(
    order_lines: &mut (impl AsyncBufRead + Unpin),
) -> Result<Option<SubjectOrder>, SubjectError> {
    let mut line = String::new();
    let mut limited = order_lines.take(LINE_MAX_BYTES as u64);
    let read = limited.read_line(&mut line).await.map_err(SubjectError::io("reading an order"))?;
    if read == 0 {
        return Ok(None);
    }
    let babble = |_| SubjectError::Babble { line: line.chars().take(80).collect(), wanted: "an order" };
    serde_json::from_str(&line).map(Some).map_err(babble)
}

async fn say(reports: &mut (impl AsyncWrite + Unpin), report: &Report) -> Result<(), SubjectError> {
    let mut line =
        serde_json::to_string(report).map_err(|error| SubjectError::Exchange(error.to_string()))?;
    line.push('\n');
    let written = async {
        reports.write_all(line.as_bytes()).await?;
        reports.flush().await
    };
    written.await.map_err(SubjectError::io("reporting"))
}

struct Player {
    dialect: SubjectDialect,
    behaviour: Behaviour,
    part: SpeakerPart,
}

enum SpeakerPart {
    None,
    Server { server: SubjectServer, out: Option<std::path::PathBuf> },
    Client { caller: Box<ClientHalf>, arm: Option<Arm> },
}

impl Player {
    /// Executes an order; a server does not report on `go`.
    async fn play(&mut self, order: SubjectOrder) -> Result<Option<Report>, SubjectError> {
        match order {
            SubjectOrder::Hello => {
                let versions = BTreeMap::from([(BUILT_IN.to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
                Ok(Some(Report::Hello { lsp: VERSION, versions, clock: CLOCK.into() }))
            }
            SubjectOrder::Prepare(prepare) => self.prepare(prepare).await.map(Some),
            SubjectOrder::Arm(arm) => self.arm(arm).map(Some),
            SubjectOrder::Go { t0_ns } => self.go(t0_ns).await,
            SubjectOrder::Stop => self.stop().map(Some),
        }
    }

    async fn prepare(&mut self, mut prepare: Prepare) -> Result<Report, SubjectError> {
        if self.behaviour == Behaviour::Boastful {
            prepare.factors.retain(|name, _| !ABILITIES.iter().any(|(_, factor)| name == factor));
        }
        if prepare.role == SubjectRole::Gateway {
            return Err(SubjectError::Exchange(format!("{} has no gateway", self.dialect.name())));
        }
        if prepare.role == SubjectRole::Server {
            let bind = prepare.bind.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
            let setup = SubjectSetup::of(&prepare.factors, prepare.seed)?;
            let server =
                SubjectServer::start_as(self.dialect, prepare.op, bind, self.behaviour, setup).await?;
            let port = server.address.port();
            self.part = SpeakerPart::Server { server, out: None };
            return Ok(ready(port));
        }
        let target =
            prepare.target.ok_or_else(|| SubjectError::Exchange("a client needs a target".into()))?;
        let caller = Box::new(ClientHalf::ready(self.dialect, prepare, target).await?);
        self.part = SpeakerPart::Client { caller, arm: None };
        Ok(ready(0))
    }

    fn arm(&mut self, order: Arm) -> Result<Report, SubjectError> {
        match &mut self.part {
            SpeakerPart::None => return Err(SubjectError::Exchange("armed before it was prepared".into())),
            SpeakerPart::Server { server, out } => {
                drop(server.take_samples());
                *out = Some(order.out);
            }
            SpeakerPart::Client { arm, .. } => *arm = Some(order),
        }
        Ok(Report::Armed)
    }

    async fn go(&mut self, t0_ns: i64) -> Result<Option<Report>, SubjectError> {
        match &mut self.part {
            SpeakerPart::Server { .. } => Ok(None),
            SpeakerPart::Client { caller, arm: Some(arm) } => {
                let mut run = caller.run(arm, t0_ns).await?;
                if self.behaviour == Behaviour::Forgetful {
                    run.samples.pop();
                }
                let bytes: Vec<u8> = run.samples.iter().flat_map(ClientSample::to_bytes).collect();
                write(&arm.out, &bytes)?;
                if !run.inserted.is_empty() {
                    let times: Vec<u8> = run.inserted.iter().flat_map(|time| time.to_le_bytes()).collect();
                    write(&sample::inserted(&arm.out), &times)?;
                }
                Ok(Some(Report::Done { n: run.answered, errors: run.errors, digest: run.digest.hex() }))
            }
            _ => Err(SubjectError::Exchange("the order go came before arm".into())),
        }
    }

    fn stop(&mut self) -> Result<Report, SubjectError> {
        let done = |n| Report::Done { n, errors: 0, digest: String::new() };
        let SpeakerPart::Server { server, out: Some(out) } = &self.part else { return Ok(done(0)) };
        let samples = server.take_samples();
        let bytes: Vec<u8> = samples.iter().flat_map(super::sample::ServerSample::to_bytes).collect();
        write(out, &bytes)?;
        Ok(done(samples.len() as u64))
    }
}

const fn ready(port: u16) -> Report {
    Report::Ready { port, facts: BTreeMap::new() }
}

fn write(path: &std::path::Path, bytes: &[u8]) -> Result<(), SubjectError> {
    std::fs::write(path, bytes).map_err(SubjectError::io(format!("{}", path.display())))
}
