//! What is started around the client of a fork: the server, and in front of it a gateway, where the cell has one.

use super::half::KnownHalves;
use super::{AttemptFailure, Digests, ForkAttempt, ForkOutput, note_versions};
use crate::record::ForkRecord;
use crate::runner::testbed::Testbed;
use crate::subject::SubjectError;
use crate::subject::protocol::{Report, SubjectRole};

impl ForkAttempt<'_> {
    /// Starts what stands between the halves before they are, and ends it after them.
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
            // Who is connected to the gateway says nothing of where it is.
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
