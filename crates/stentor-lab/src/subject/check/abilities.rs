//! Checks of the abilities stated in a subject's definition: rows, encryption, a connection for each exchange.

use super::{DialectCheck, EXCHANGES, Passed, SEED, levels};
use crate::subject::certificate;
use crate::subject::clock::monotonic_ns;
use crate::subject::process::{SubjectProcess, absolute};
use crate::subject::protocol::{Report, SubjectOrder, SubjectRole};
use crate::subject::reference::{Op, SampleRequest};
use crate::subject::sample::{self, ClientSample, ServerSample};
use crate::subject::server::{Behaviour, SubjectServer};
use crate::subject::setup::{SubjectSetup, TLS_NAME};
use crate::subject::store::PointStore;
use crate::subject::{
    ABILITIES, BUFFERING, Definition, FRESH, INSERT, SERVICE, STORE, SubjectError, TLS, TLS_CLIENT,
    TLS_SERVER,
};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use stentor_wire::{Content, Point};

/// The level of a factor that names a file, as used in plans.
const SQLITE: &str = "sqlite";
/// The factors of paged points: one page per exchange.
const PAGED: [(&str, &str); 2] = [("poi", "14"), ("page", "3")];
/// The factors of a service that takes long: sorting 2,000 numbers once takes any language less than `SERVICE_MIN_NS`, and 2,000 times more.
const REPEATED: [(&str, &str); 2] = [("items", "2000"), (SERVICE, "2000")];
const SERVICE_MIN_NS: i64 = 4_000_000;
/// A server name other than the laboratory's.
const OTHER_NAME: &str = "elsewhere";
/// Folders of certificates: the laboratory's own, another one with the same name, and one with another name.
const OWN: &str = "own";
const OTHER: &str = "other";
const MISNAMED: &str = "misnamed";

/// Checks a half for every ability stated in its definition.
pub(super) async fn check(
    definition: &Definition,
    role: SubjectRole,
    directory: &Path,
    patience: Duration,
) -> Result<Vec<Passed>, SubjectError> {
    let (mut passed, dialect) = (Vec::new(), definition.dialect()?);
    for ability in &definition.can {
        if !ABILITIES.iter().any(|(known, _)| known == ability) {
            return Err(SubjectError::Wrong(format!("it declares the unknown ability {ability:?}")));
        }
        for (op, factors) in cells(definition, ability, role) {
            let trial = DialectCheck { definition, dialect, op, factors, directory, patience };
            let versions = trial.ability(role).await.map_err(|error| denied(ability, &error))?;
            passed.push(trial.passed(role, versions));
        }
    }
    Ok(passed)
}

/// Lists the trials of an ability. Rows are tried with points even if the subject does not list that operation, because the ability implies
/// it.
fn cells(definition: &Definition, ability: &str, role: SubjectRole) -> Vec<(Op, BTreeMap<String, String>)> {
    let any = definition.ops.first().copied().unwrap_or(Op::Echo);
    let paged = |more: &[(&str, &str)]| (Op::Points, levels(&[&PAGED[..], more].concat()));
    match (ability, role) {
        (INSERT, SubjectRole::Client) => {
            let whole = (Op::Points, levels(&[("poi", "7"), (INSERT, SQLITE)]));
            vec![whole, paged(&[(INSERT, SQLITE), ("sync", "resume")])]
        }
        (STORE, SubjectRole::Server) => vec![paged(&[(STORE, SQLITE)])],
        (TLS, _) | (TLS_CLIENT, SubjectRole::Client) | (TLS_SERVER, SubjectRole::Server) => {
            vec![(any, levels(&[("tls", "on")]))]
        }
        (FRESH, SubjectRole::Client) => vec![(any, levels(&[("connection", "fresh"), ("keepalive", "off")]))],
        (BUFFERING, _) => vec![(any, levels(&[(BUFFERING, "whole")]))],
        (SERVICE, SubjectRole::Server) => vec![(Op::Sort, levels(&REPEATED))],
        _ => Vec::new(),
    }
}

fn denied(ability: &str, error: &SubjectError) -> SubjectError {
    let text = match error {
        SubjectError::Wrong(text) => text.clone(),
        other => other.to_string(),
    };
    SubjectError::Wrong(format!("it says that it can {ability:?}: {text}"))
}

impl DialectCheck<'_> {
    async fn ability(&self, role: SubjectRole) -> Result<BTreeMap<String, String>, SubjectError> {
        for file in [self.file(INSERT)?, self.file(STORE)?] {
            // Rows of an earlier trial must not be taken for those of this one.
            let _ = std::fs::remove_file(file);
        }
        if role == SubjectRole::Server {
            let versions = self.server().await?;
            self.judge_store()?;
            return Ok(versions);
        }
        let versions = self.client().await?;
        if self.factors.contains_key(TLS) {
            self.refuses(OWN, OTHER).await?;
            self.refuses(MISNAMED, MISNAMED).await?;
        }
        Ok(versions)
    }

    /// Returns the factors with the paths of their files.
    pub(super) fn own_factors(&self) -> Result<BTreeMap<String, String>, SubjectError> {
        self.factors_with(OWN)
    }

    fn factors_with(&self, certified: &str) -> Result<BTreeMap<String, String>, SubjectError> {
        let mut factors = self.factors.clone();
        for name in [INSERT, STORE] {
            if let Some(level) = factors.get_mut(name) {
                *level = self.file(name)?.display().to_string();
            }
        }
        if factors.contains_key(TLS) {
            let place = absolute(&self.directory.join(certified))?;
            let name = if certified == MISNAMED { OTHER_NAME } else { TLS_NAME };
            let made = certificate::make_named(&place, name);
            made.map_err(|error| SubjectError::Exchange(error.to_string()))?;
            certificate::add(&mut factors, &place);
        }
        Ok(factors)
    }

    fn file(&self, name: &str) -> Result<PathBuf, SubjectError> {
        absolute(&self.directory.join(format!("{name}.db")))
    }

    pub(super) fn resumes(&self) -> bool {
        self.factors.contains_key("sync")
    }

    /// Connects a client that trusts one certificate to a server with another. Fails if an exchange takes place.
    async fn refuses(&self, trusted: &str, shown: &str) -> Result<(), SubjectError> {
        let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let setup = SubjectSetup::of(&self.factors_with(shown)?, SEED)?;
        let server = SubjectServer::start_as(self.dialect, self.op, bind, Behaviour::Honest, setup).await?;
        let mut host = SubjectProcess::start(self.definition, self.patience)?;
        let met = self.meet(&mut host, self.factors_with(trusted)?, server.address).await;
        host.end().await;
        let answered = match met {
            Ok(answered) => answered,
            // It may give up while connecting.
            Err(SubjectError::GaveUp(_)) => 0,
            Err(error) => return Err(error),
        };
        if answered == 0 && server.take_samples().is_empty() {
            return Ok(());
        }
        let whose = if shown == MISNAMED { "is for another name" } else { "is not one that it trusts" };
        Err(SubjectError::Wrong(format!("it talked to a server whose certificate {whose}")))
    }

    /// Returns the number of responses that a client received.
    async fn meet(
        &self,
        host: &mut SubjectProcess,
        factors: BTreeMap<String, String>,
        target: SocketAddr,
    ) -> Result<u64, SubjectError> {
        host.hello().await?;
        let mut prepare = self.prepare(SubjectRole::Client, Some(target))?;
        prepare.factors = factors;
        host.ask(&SubjectOrder::Prepare(prepare)).await?;
        self.arm(host, 1).await?;
        match host.ask(&SubjectOrder::Go { t0_ns: monotonic_ns() }).await? {
            Report::Done { n, .. } => Ok(n),
            other => Err(other.instead_of("done")),
        }
    }

    /// Checks that no half streams in a cell of whole messages; `flags` are those of its samples.
    pub(super) fn judge_buffers(&self, flags: impl IntoIterator<Item = u16>) -> Result<(), SubjectError> {
        let is_streamed = self.factors.contains_key(BUFFERING) && flags.into_iter().any(|flags| flags != 0);
        let streamed = || SubjectError::Wrong("it streams, although whole messages were requested".into());
        (!is_streamed).then_some(()).ok_or_else(streamed)
    }

    /// Checks that a service that is repeated takes longer than one that is not.
    pub(super) fn judge_service(&self, samples: &[ServerSample]) -> Result<(), SubjectError> {
        let shortest = samples.iter().map(|one| one.t_work_end - one.t_deser_end).min();
        match shortest.filter(|_| self.factors.contains_key(SERVICE)) {
            Some(shortest @ ..SERVICE_MIN_NS) => Err(SubjectError::Wrong(format!(
                "its service takes {shortest} ns when it should be repeated"
            ))),
            _ => Ok(()),
        }
    }

    pub(super) fn judge_connections(&self, connections: u64) -> Result<(), SubjectError> {
        if !self.factors.contains_key("connection") || connections >= EXCHANGES {
            return Ok(());
        }
        Err(SubjectError::Wrong(format!("{connections} connections for {EXCHANGES} exchanges")))
    }

    /// Checks the rows, which must be exactly the expected ones, and their insertion times. Without the factor `insert` there must be no
    /// times.
    pub(super) fn judge_rows(&self, samples: &[ClientSample]) -> Result<(), SubjectError> {
        let times = sample::read_times(&sample::inserted(&self.out()?))?;
        if !self.factors.contains_key(INSERT) {
            let unasked = || SubjectError::Wrong("it reports rows that were not requested".into());
            return times.is_empty().then_some(()).ok_or_else(unasked);
        }
        let ends = samples.iter().map(|one| one.t_deser_end);
        if times.len() != samples.len() || !ends.zip(&times).all(|(end, time)| end <= *time) {
            let (times, samples) = (times.len(), samples.len());
            let sentence = format!("{times} times of rows for {samples} samples, or out of order");
            return Err(SubjectError::Wrong(sentence));
        }
        if self.resumes() {
            return self.judge_file(INSERT, EXCHANGES, &self.all_points());
        }
        // Each exchange returned different points with the same numbers.
        match self.exchange(EXCHANGES - 1)?.1 {
            Content::Points(last) => self.judge_file(INSERT, 1, &last),
            _ => Ok(()),
        }
    }

    fn judge_store(&self) -> Result<(), SubjectError> {
        if self.factors.contains_key(STORE) {
            return self.judge_file(STORE, 0, &self.all_points());
        }
        Ok(())
    }

    fn all_points(&self) -> Vec<Point> {
        SampleRequest::all(&self.factors, SEED).points(&self.factors)
    }

    fn judge_file(&self, name: &str, pages: u64, expected: &[Point]) -> Result<(), SubjectError> {
        let there = PointStore::open(&self.file(name)?)?.offline()?;
        if there.points == expected && there.pages == pages && !there.is_stale {
            return Ok(());
        }
        let complete = if there.is_stale { "not complete" } else { "complete" };
        Err(SubjectError::Wrong(format!(
            "{} rows and {} pages, {complete}, instead of the {} rows and {pages} pages that had to come",
            there.points.len(),
            there.pages,
            expected.len()
        )))
    }
}
