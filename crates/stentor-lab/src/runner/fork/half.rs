//! One half of a fork: a subject that runs, and what it said of itself.

use super::{AttemptFailure, ForkAttempt};
use crate::runner::testbed::Testbed;
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::{Report, SubjectOrder, SubjectRole};
use std::collections::BTreeMap;
use std::time::Instant;

/// A half that runs.
pub(super) struct RunningHalf {
    pub(super) host: SubjectProcess,
    pub(super) began: Instant,
    pub(super) versions: BTreeMap<String, String>,
    pub(super) ready_ns: u64,
    /// What it was told of those before it, and once it is ready, what those after it are told.
    pub(super) known: KnownHalves,
}

/// What a half is told of those that were started before it.
#[derive(Clone, Default)]
pub(super) struct KnownHalves {
    /// Where the server listens.
    pub(super) port: u16,
    /// What the gateway said of itself.
    pub(super) facts: BTreeMap<String, String>,
}

impl RunningHalf {
    /// Orders it to get ready; a half that cannot is ended.
    pub(super) async fn prepared(
        mut self,
        trial: &ForkAttempt<'_>,
        testbed: &dyn Testbed,
        role: SubjectRole,
    ) -> Result<Self, AttemptFailure> {
        let order = SubjectOrder::Prepare(trial.prepare(role, testbed, &self.known));
        let ready = self.host.ask(&order).await;
        self.ready_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match ready {
            Ok(Report::Ready { port, facts }) => {
                self.known = KnownHalves { port, facts };
                Ok(self)
            }
            Ok(other) => {
                self.host.end().await;
                Err(other.instead_of("ready").into())
            }
            Err(error) => {
                self.host.end().await;
                Err(error.into())
            }
        }
    }
}
