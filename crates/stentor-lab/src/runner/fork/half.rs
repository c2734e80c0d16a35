//! One half of a fork: a subject that runs, and what it said of itself.

use super::{AttemptFailure, ForkAttempt};
use crate::runner::testbed::Testbed;
use crate::subject::SubjectError;
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::{Report, SubjectOrder, SubjectRole};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

/// A half that runs.
pub(super) struct RunningHalf {
    pub(super) host: SubjectProcess,
    pub(super) began: Instant,
    pub(super) versions: BTreeMap<String, String>,
    pub(super) ready_ns: u64,
    /// Where the server listens.
    pub(super) port: u16,
}

impl RunningHalf {
    /// Tells it to get ready; a half that cannot is ended.
    pub(super) async fn prepared(
        mut self,
        trial: &ForkAttempt<'_>,
        testbed: &dyn Testbed,
        role: SubjectRole,
    ) -> Result<Self, AttemptFailure> {
        let address = SocketAddr::new(testbed.address(SubjectRole::Server), self.port);
        let ready = self.host.ask(&SubjectOrder::Prepare(trial.prepare(role, address))).await;
        self.ready_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match ready {
            Ok(Report::Ready { port }) => {
                self.port = port;
                Ok(self)
            }
            Ok(other) => {
                self.host.end().await;
                Err(SubjectError::Babble { line: other.name().into(), wanted: "ready" }.into())
            }
            Err(error) => {
                self.host.end().await;
                Err(error.into())
            }
        }
    }
}
