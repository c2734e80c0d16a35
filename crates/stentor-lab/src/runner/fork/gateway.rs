//! The processes around a fork's client: the server and, if the cell has one, a gateway.

use super::half::KnownHalves;
use super::{AttemptFailure, Digests, ForkAttempt, ForkOutput, note_versions};
use crate::record::ForkRecord;
use crate::runner::testbed::Testbed;
use crate::subject::SubjectError;
use crate::subject::protocol::{Report, SubjectRole};

impl ForkAttempt<'_> {
    /// Runs the fork between the start and the end of its gateway.
    pub(super) async fn with_gateway(
        &self,
        testbed: &mut dyn Testbed,
        record: &mut ForkRecord,
        digests: &Digests,
    ) -> Result<ForkOutput, AttemptFailure> {
        let gateway = self.start(testbed, SubjectRole::Gateway, KnownHalves::default()).await?;
        note_versions(record, "gateway", &gateway.versions);
        let found = self.with_server(testbed, &gateway.known, record, digests).await;
        Ok(gateway.host.stop_after(found).await?.0)
    }

    pub(super) async fn with_server(
        &self,
        testbed: &mut dyn Testbed,
        known: &KnownHalves,
        record: &mut ForkRecord,
        digests: &Digests,
    ) -> Result<ForkOutput, AttemptFailure> {
        let mut server = self.start(testbed, SubjectRole::Server, known.clone()).await?;
        if self.cell.gateway.is_some() {
            // The port of a server behind a gateway is not the gateway's, so the client needs the gateway's values.
            server.known = known.clone();
        }
        record.start_ns.server = Some(server.ready_ns);
        note_versions(record, "server", &server.versions);
        let found = self.with_client(testbed, &mut server, record, digests).await;
        let (found, report, status) = server.host.stop_after(found).await?;
        let Report::Done { .. } = report else {
            let sentence = format!("the server said {} at the end", report.name());
            return Err(SubjectError::Wrong(sentence).into());
        };
        if !status.success() {
            return Err(SubjectError::Wrong(format!("the server ended with {status}")).into());
        }
        Ok(found)
    }
}
