//! The check of a subject before it may be timed: it speaks LSP-1, gives the known responses, writes valid samples, and ends when ordered;
//! and it has the abilities stated in its definition.

mod abilities;

use super::client::SubjectClient;
use super::clock::monotonic_ns;
use super::dialect::SubjectDialect;
use super::process::{SubjectProcess, absolute};
use super::protocol::{ExchangeSchedule, Prepare, Report, SubjectOrder, SubjectRole};
use super::reference::{Digest, Op};
use super::sample::{self, ClientSample, ServerSample, read_client, read_server};
use super::server::{Behaviour, SubjectServer};
use super::setup::SubjectSetup;
use super::{Definition, SubjectError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use stentor_wire::Content;

/// Exchanges per operation.
const EXCHANGES: u64 = 5;
/// Number of exchanges that a resuming client has made before.
const RESUMED_AT: u64 = 2;
/// The seed of the first contents; the following contents use the following numbers.
const SEED: u64 = 20_120_704;

/// A passed trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// The half.
    pub role: SubjectRole,
    /// The operation.
    pub op: Op,
    /// Levels of the cell.
    pub factors: BTreeMap<String, String>,
    /// Number of compared responses.
    pub answers: u64,
    /// Reported versions.
    pub versions: BTreeMap<String, String>,
}

/// Checks every operation of every half, and the abilities stated in the definition. `patience` is the timeout of each report and response;
/// `directory` holds files of samples. The first error ends the check.
pub async fn check(
    definition: &Definition,
    directory: &Path,
    patience: Duration,
) -> Result<Vec<Passed>, SubjectError> {
    if definition.is_of_push_service() {
        // An app server answers no exchanges by itself; its errors appear in a fork.
        return Ok(Vec::new());
    }
    let dialect = definition.dialect()?;
    let mut passed = Vec::new();
    for role in &definition.roles {
        for (op, factors) in cells(&definition.ops) {
            let trial = DialectCheck { definition, dialect, op, factors, directory, patience };
            let versions = match role {
                SubjectRole::Server => trial.server().await?,
                SubjectRole::Client => trial.client().await?,
                // A gateway answers no exchanges by itself; its errors appear in a fork.
                SubjectRole::Gateway => continue,
            };
            passed.push(trial.passed(*role, versions));
        }
        passed.extend(abilities::check(definition, *role, directory, patience).await?);
    }
    Ok(passed)
}

/// Lists the trials of each operation; arrays have three types.
fn cells(ops: &[Op]) -> Vec<(Op, BTreeMap<String, String>)> {
    let cell = |op: Op, pairs: &[(&str, &str)]| (op, levels(pairs));
    let of_op = |op: &Op| match op {
        Op::Echo => vec![cell(Op::Echo, &[("payload", "1024")])],
        Op::Sort => vec![cell(Op::Sort, &[("items", "100")])],
        Op::Array => ["Int", "String", "Object"]
            .map(|kind| cell(Op::Array, &[("items", "20"), ("type", kind)]))
            .to_vec(),
        Op::Points => vec![cell(Op::Points, &[("poi", "7")])],
    };
    ops.iter().flat_map(of_op).collect()
}

fn levels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect()
}

struct DialectCheck<'a> {
    definition: &'a Definition,
    dialect: SubjectDialect,
    op: Op,
    factors: BTreeMap<String, String>,
    directory: &'a Path,
    patience: Duration,
}

impl DialectCheck<'_> {
    fn passed(self, role: SubjectRole, versions: BTreeMap<String, String>) -> Passed {
        Passed { role, op: self.op, factors: self.factors, answers: EXCHANGES, versions }
    }

    /// Sends requests to a server and compares its responses.
    async fn server(&self) -> Result<BTreeMap<String, String>, SubjectError> {
        let mut host = SubjectProcess::start(self.definition, self.patience)?;
        let judged = self.judge_server(&mut host).await;
        let versions = finished(host, judged).await?;
        self.judge_server_samples(&self.out()?)?;
        Ok(versions)
    }

    async fn judge_server(
        &self,
        host: &mut SubjectProcess,
    ) -> Result<BTreeMap<String, String>, SubjectError> {
        let versions = host.hello().await?;
        let ready = host.ask(&SubjectOrder::Prepare(self.prepare(SubjectRole::Server, None)?)).await?;
        let Report::Ready { port: port @ 1.., .. } = ready else {
            return Err(ready.instead_of("ready with a port"));
        };
        self.arm(host, EXCHANGES).await?;
        host.send(&SubjectOrder::Go { t0_ns: monotonic_ns() }).await?;
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let setup = SubjectSetup::of(&self.own_factors()?, SEED)?;
        let mut client = SubjectClient::connect_as(self.dialect, self.op, target, setup).await?;
        for seq in 0..EXCHANGES {
            let (request, expected) = self.exchange(seq)?;
            let answered = tokio::time::timeout(self.patience, client.exchange(seq, 0, &request)).await;
            let silent = SubjectError::Silent { to: "answer", seconds: self.patience.as_secs() };
            let (_, answer) = answered.map_err(|_| silent)??;
            if answer != expected {
                return Err(self.wrong(&format!("answer {seq} is not the expected one"), &expected, &answer));
            }
        }
        Ok(versions)
    }

    fn judge_server_samples(&self, out: &Path) -> Result<(), SubjectError> {
        let samples = read_server(out)?;
        let in_order = |one: &ServerSample| {
            one.t_recv > 0
                && one.t_recv <= one.t_deser_end
                && one.t_deser_end <= one.t_work_end
                && one.t_work_end <= one.t_ser_end
                && one.status == 0
        };
        let counted = samples.len() as u64 == EXCHANGES;
        if counted && samples.iter().all(in_order) && samples.iter().zip(0..).all(|(one, seq)| one.seq == seq)
        {
            self.judge_buffers(samples.iter().map(|one| one.flags))?;
            return self.judge_service(&samples);
        }
        Err(SubjectError::Wrong(format!("{} samples of the server, or times out of order", samples.len())))
    }

    /// Lets a client send requests to our server and compares its reported digest.
    async fn client(&self) -> Result<BTreeMap<String, String>, SubjectError> {
        let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let setup = SubjectSetup::of(&self.own_factors()?, SEED)?;
        let server = SubjectServer::start_as(self.dialect, self.op, bind, Behaviour::Honest, setup).await?;
        let mut host = SubjectProcess::start(self.definition, self.patience)?;
        let judged = self.judge_client(&mut host, &server).await;
        finished(host, judged).await
    }

    async fn judge_client(
        &self,
        host: &mut SubjectProcess,
        server: &SubjectServer,
    ) -> Result<BTreeMap<String, String>, SubjectError> {
        let versions = host.hello().await?;
        self.prepare_client(host, server.address).await?;
        if self.resumes() {
            self.go(host, 0..RESUMED_AT).await?;
            drop(server.take_samples());
        }
        let numbers = if self.resumes() { RESUMED_AT..EXCHANGES } else { 0..EXCHANGES };
        self.go(host, numbers.clone()).await?;
        self.judge_client_samples(numbers, server)?;
        Ok(versions)
    }

    async fn prepare_client(
        &self,
        host: &mut SubjectProcess,
        target: SocketAddr,
    ) -> Result<(), SubjectError> {
        match host.ask(&SubjectOrder::Prepare(self.prepare(SubjectRole::Client, Some(target))?)).await? {
            Report::Ready { .. } => Ok(()),
            other => Err(other.instead_of("ready")),
        }
    }

    /// Runs a client's exchanges with these numbers; the client receives only the end of the range.
    async fn go(&self, host: &mut SubjectProcess, numbers: Range<u64>) -> Result<(), SubjectError> {
        self.arm(host, numbers.end).await?;
        let done = host.ask(&SubjectOrder::Go { t0_ns: monotonic_ns() }).await?;
        let Report::Done { n, errors, digest } = &done else { return Err(done.instead_of("done")) };
        let count = numbers.end - numbers.start;
        if (*n, *errors) != (count, 0) {
            return Err(SubjectError::Wrong(format!(
                "{n} answers and {errors} errors instead of {count} answers"
            )));
        }
        let mut expected = Digest::default();
        for seq in numbers {
            expected.add(&self.exchange(seq)?.1);
        }
        if *digest != expected.hex() {
            let sentence =
                format!("{}: digest {digest} of its answers instead of {}", self.op.word(), expected.hex());
            return Err(SubjectError::Wrong(sentence));
        }
        Ok(())
    }

    fn judge_client_samples(&self, numbers: Range<u64>, server: &SubjectServer) -> Result<(), SubjectError> {
        let samples = read_client(&self.out()?)?;
        let connections = server.connections();
        let received = server.take_samples().len() as u64;
        let sane = |one: &ClientSample| one.is_in_order() && one.status == 0 && one.bytes > 0;
        let count = numbers.end - numbers.start;
        let counted = samples.len() as u64 == count && received == count;
        if !counted
            || !samples.iter().all(sane)
            || !samples.iter().zip(numbers).all(|(one, seq)| one.seq == seq)
        {
            let sentence = format!(
                "{} samples for {received} requests at our server and {count} exchanges, or times out of order",
                samples.len()
            );
            return Err(SubjectError::Wrong(sentence));
        }
        self.judge_connections(connections)?;
        self.judge_buffers(samples.iter().map(|one| one.flags))?;
        self.judge_rows(&samples)
    }

    fn prepare(&self, role: SubjectRole, target: Option<SocketAddr>) -> Result<Prepare, SubjectError> {
        let bind = (role == SubjectRole::Server).then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let factors = self.own_factors()?;
        Ok(Prepare { role, op: self.op, factors, bind, target, seed: SEED, variant: String::new() })
    }

    async fn arm(&self, host: &mut SubjectProcess, count: u64) -> Result<(), SubjectError> {
        let out = self.out()?;
        // A file of an earlier trial must not be taken for that of this one.
        let _ = std::fs::remove_file(&out);
        let _ = std::fs::remove_file(sample::inserted(&out));
        host.arm(ExchangeSchedule::Closed { think_ns: 0 }, count, &out).await
    }

    fn out(&self) -> Result<std::path::PathBuf, SubjectError> {
        absolute(&self.directory.join("samples.bin"))
    }

    fn exchange(&self, seq: u64) -> Result<(Content, Content), SubjectError> {
        let exchange = self.op.exchange_number(&self.factors, SEED, seq);
        let exchange = exchange.ok_or_else(|| SubjectError::Exchange("the cell makes no sense".into()))?;
        Ok((exchange.request, exchange.answer))
    }

    fn wrong(&self, what: &str, expected: &Content, found: &Content) -> SubjectError {
        let (expected, found) = (expected.entries(), found.entries());
        SubjectError::Wrong(format!("{}: {what} ({found} entries, {expected} expected)", self.op.word()))
    }
}

async fn finished<T>(host: SubjectProcess, judged: Result<T, SubjectError>) -> Result<T, SubjectError> {
    let (judged, _, status) = host.stop_after(judged).await?;
    if status.success() { Ok(judged) } else { Err(SubjectError::Wrong(format!("it ended with {status}"))) }
}
