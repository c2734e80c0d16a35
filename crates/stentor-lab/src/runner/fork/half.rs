//! One half of a fork: a running subject with its reported facts.

use super::{AttemptFailure, ForkAttempt};
use crate::runner::testbed::Testbed;
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::{Report, SubjectOrder, SubjectRole};
use std::collections::BTreeMap;
use std::time::Instant;

/// A running half.
pub(super) struct RunningHalf {
    pub(super) host: SubjectProcess,
    pub(super) began: Instant,
    pub(super) versions: BTreeMap<String, String>,
    pub(super) ready_ns: u64,
    /// Facts of the halves started before; once this half is ready, the facts for those started after it.
    pub(super) known: KnownHalves,
}

/// The facts that a half receives about the halves started before it.
#[derive(Clone, Default)]
pub(super) struct KnownHalves {
    /// The port of the server.
    pub(super) port: u16,
    /// The facts reported by the gateway.
    pub(super) facts: BTreeMap<String, String>,
}

impl RunningHalf {
    /// Orders the half to prepare, and ends it if it fails.
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
