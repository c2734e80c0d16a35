//! The real server as a subject of a study, by LSP-1: the server half runs the server itself in its process, with data of its
//! own, and the client half asks it through one face.

use super::list_page::ListPage;
use super::own_data::OwnData;
use super::replay::Replay;
use super::replaying_caller::ReplayingCaller;
use crate::client::{ApiClient, Key};
use crate::text::cell;
use anyhow::{Context, bail};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use stentor_lab::subject::clock::monotonic_ns;
use stentor_lab::subject::protocol::{
    Arm, CLOCK, ExchangeSchedule, Prepare, Report, SubjectOrder, SubjectRole, VERSION,
};
use stentor_lab::subject::reference::Digest;
use stentor_lab::subject::sample::{ClientSample, READ_WHILE_RECEIVED};
use stentor_server::app::BuiltServer;
use stentor_server::config;
use stentor_wire::Content;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

/// The root key of a server that lives for one fork: both halves have to know it, and nobody else can reach it.
pub(crate) const ROOT_KEY: &str = "sk_aLaboratoryKeyThatIsKnownToBothHalvesOfAFor";

/// Plays a half until it is told to stop, or nobody is left to tell it.
pub async fn speak(dialect: &str) -> anyhow::Result<()> {
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let mut reports = tokio::io::stdout();
    let mut half = FaceHalf::None;
    while let Some(line) = orders.next_line().await? {
        let order: SubjectOrder = serde_json::from_str(&line)?;
        let is_last = order == SubjectOrder::Stop;
        let followed = half.follow(dialect, order).await;
        let report = followed.unwrap_or_else(|error| Some(Report::Error { text: format!("{error:#}") }));
        if let Some(report) = report {
            reports.write_all(format!("{}\n", serde_json::to_string(&report)?).as_bytes()).await?;
            reports.flush().await?;
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Names the face that a dialect of the laboratory stands for.
fn face_of(dialect: &str) -> anyhow::Result<&'static str> {
    Ok(match dialect {
        "soap" => "soap",
        "xmlrpc" => "xmlrpc",
        "rest+json" => "rest",
        _ => bail!("no face of the server is asked in {dialect}"),
    })
}

enum FaceHalf {
    None,
    // The directory goes with it.
    Server { _directory: TempDir, out: Option<PathBuf> },
    Client { caller: Box<FaceCaller>, arm: Option<Arm> },
}

impl FaceHalf {
    /// Follows an order; a server that is told to go has nothing to say.
    async fn follow(&mut self, dialect: &str, order: SubjectOrder) -> anyhow::Result<Option<Report>> {
        match order {
            SubjectOrder::Hello => {
                let versions = BTreeMap::from([("stentor".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
                Ok(Some(Report::Hello { lsp: VERSION, versions, clock: CLOCK.into() }))
            }
            SubjectOrder::Prepare(prepare) => self.prepare(dialect, prepare).await.map(Some),
            SubjectOrder::Arm(arm) => self.arm(arm).map(Some),
            SubjectOrder::Go { t0_ns } => self.go(t0_ns),
            SubjectOrder::Stop => self.stop().map(Some),
        }
    }

    async fn prepare(&mut self, dialect: &str, prepare: Prepare) -> anyhow::Result<Report> {
        let own = OwnData::of(&prepare.factors)?;
        if prepare.role == SubjectRole::Client {
            let target = prepare.target.context("a client needs a target")?;
            let caller = Box::new(FaceCaller::connect(face_of(dialect)?, target, own).await?);
            *self = Self::Client { caller, arm: None };
            return Ok(Report::Ready { port: 0 });
        }
        let directory = tempfile::Builder::new().prefix("stentor-lab-").tempdir()?;
        let bind = prepare.bind.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let address = serve(directory.path(), bind).await?;
        own.put(root(address)?, prepare.seed).await?;
        *self = Self::Server { _directory: directory, out: None };
        Ok(Report::Ready { port: address.port() })
    }

    fn arm(&mut self, order: Arm) -> anyhow::Result<Report> {
        match self {
            Self::None => bail!("armed before it was prepared"),
            Self::Server { out, .. } => *out = Some(order.out),
            Self::Client { arm, .. } => *arm = Some(order),
        }
        Ok(Report::Armed)
    }

    fn go(&mut self, t0_ns: i64) -> anyhow::Result<Option<Report>> {
        match self {
            Self::Server { .. } => Ok(None),
            Self::Client { caller, arm: Some(arm) } => caller.run(arm, t0_ns).map(Some),
            _ => bail!("told to go before it was armed"),
        }
    }

    /// The server tells no times of its phases: what it does for a call is not stopped for a clock.
    fn stop(&mut self) -> anyhow::Result<Report> {
        if let Self::Server { out: Some(out), .. } = self {
            std::fs::write(out, [])?;
        }
        Ok(Report::Done { n: 0, errors: 0, digest: String::new() })
    }
}

/// Runs the server in this process, where its processor time and memory are counted, and returns where it listens.
pub(crate) async fn serve(directory: &Path, bind: SocketAddr) -> anyhow::Result<SocketAddr> {
    let file = directory.join("stentor.toml");
    let data_dir = directory.join("data");
    let settings = format!(
        "data_dir = {:?}\n[api]\nlisten = \"{bind}\"\nroot_key = \"{ROOT_KEY}\"\n",
        data_dir.display().to_string()
    );
    crate::files::publish(&file, &settings)?;
    let server = BuiltServer::build(config::load(Some(&file))?).await?;
    let address = server.local_addr();
    let (sender, reload) = mpsc::channel(1);
    tokio::spawn(async move {
        // It serves as long as this process lives, and nobody asks it to read its settings again.
        let _never = sender;
        let _ = server.run(std::future::pending(), reload).await;
    });
    Ok(address)
}

pub(crate) fn root(address: SocketAddr) -> anyhow::Result<ApiClient> {
    ApiClient::new(&format!("http://{address}"), Some(Key(ROOT_KEY.to_owned())), None)
}

/// A client with its connection.
struct FaceCaller {
    face: &'static str,
    key: String,
    target: SocketAddr,
    own: OwnData,
    caller: ReplayingCaller,
}

impl FaceCaller {
    /// Makes a key of the app that has the data, and connects.
    async fn connect(face: &'static str, target: SocketAddr, own: OwnData) -> anyhow::Result<Self> {
        let root = root(target)?;
        let apps = root.get("/v1/apps").await?;
        let path = format!("/v1/apps/{}/keys", cell(&apps["apps"][0]["id"]));
        let key = root.post(&path, &json!({"name": face, "scopes": ["admin"]})).await?;
        let key = key["secret"].as_str().context("the server made no key")?.to_owned();
        let caller = ReplayingCaller::connect(&Replay::of(face, target, &key, &own.call(0, None)))?;
        Ok(Self { face, key, target, own, caller })
    }

    /// Makes the exchanges of a run, one at a time.
    fn run(&mut self, arm: &Arm, t0_ns: i64) -> anyhow::Result<Report> {
        let (mut samples, mut digest, mut errors) = (Vec::new(), Digest::default(), 0);
        let begin_ns = t0_ns.max(monotonic_ns());
        for seq in 0..arm.count {
            let t_intended = intended(arm.schedule, begin_ns, seq);
            wait_until(t_intended);
            match self.exchange(seq, t_intended) {
                Ok((sample, answer)) => {
                    digest.add(&answer);
                    samples.extend(sample.to_bytes());
                }
                Err(error) => {
                    errors += 1;
                    // Standard error is a subject's log.
                    let _ = writeln!(std::io::stderr(), "exchange {seq}: {error:#}");
                    let failed = ClientSample { seq, t_intended, status: 1, ..ClientSample::default() };
                    samples.extend(failed.to_bytes());
                }
            }
        }
        std::fs::write(&arm.out, samples)?;
        Ok(Report::Done { n: arm.count - errors, errors, digest: digest.hex() })
    }

    /// Asks for page after page until all is there. Phases of several pages cannot be told apart: what was received before
    /// the last page was read meanwhile.
    fn exchange(&mut self, seq: u64, t_intended: i64) -> anyhow::Result<(ClientSample, Content)> {
        let mut sample = ClientSample { seq, t_intended, t_start: monotonic_ns(), ..ClientSample::default() };
        let (mut answer, mut there, mut after, mut pages) = (self.own.nothing(), 0, None::<String>, 0);
        while self.own.is_short(there) {
            let call = self.own.call(there, after.as_deref());
            let request = Replay::of(self.face, self.target, &self.key, &call).request;
            if pages == 0 {
                sample.t_ser_end = monotonic_ns();
            }
            let reply = self.caller.call_with(request)?;
            sample.t_end = monotonic_ns();
            sample.bytes += u32::try_from(reply.len()).unwrap_or(u32::MAX);
            let page = ListPage::read(self.face, reply)?;
            if pages == 0 {
                sample.t_first_byte = self.caller.first_byte_ns().unwrap_or(sample.t_end);
            }
            pages += 1;
            after.clone_from(&page.next);
            let now = self.own.add(&mut answer, page)?;
            if now == there || (after.is_none() && self.own.is_short(now)) {
                bail!("the list ends after {now}");
            }
            there = now;
        }
        sample.flags = if pages > 1 { READ_WHILE_RECEIVED } else { 0 };
        sample.t_deser_end = monotonic_ns();
        Ok((sample, answer))
    }
}

/// When an exchange should start: at even intervals, or now.
fn intended(schedule: ExchangeSchedule, begin_ns: i64, seq: u64) -> i64 {
    match schedule {
        ExchangeSchedule::Open { interval_ns, .. } => {
            begin_ns.saturating_add(interval_ns.saturating_mul(seq).cast_signed())
        }
        ExchangeSchedule::Closed { .. } => monotonic_ns(),
    }
}

fn wait_until(instant_ns: i64) {
    if let Ok(wait @ 1..) = u64::try_from(instant_ns - monotonic_ns()) {
        std::thread::sleep(Duration::from_nanos(wait));
    }
}
