//! A synchronisation that is interrupted half way: the link is cut, the client is killed, or both. The rows that the client has must be
//! readable without the server, be marked as stale, and not be requested again.

use super::super::interruption::Interruption;
use super::{AttemptFailure, ForkAttempt, ForkOutput, RunningHalf, Testbed, note_versions};
use crate::record::{ForkRecord, From as Origin, InterruptionOutcome, PhaseLatency, phase};
use crate::subject::SubjectError;
use crate::subject::clock::monotonic_ns;
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::{ExchangeSchedule, Report, SubjectOrder, SubjectRole};
use crate::subject::reference::{Digest, SampleRequest};
use crate::subject::sample;
use crate::subject::store::{Offline, PointStore};
use std::time::{Duration, Instant};
use stentor_wire::{Content, Point};

/// Duration of a link cut, as in a lift, a tunnel, or a network change.
const CUT_FOR: Duration = Duration::from_secs(2);
/// Polling interval for half of the pages.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The known properties of a synchronisation.
struct Errand {
    interruption: Interruption,
    pages: u64,
    points: Vec<Point>,
    /// Points per page.
    page: usize,
    rows: PointStore,
}

impl ForkAttempt<'_> {
    /// Runs one synchronisation with an interruption, from the first page to the last.
    pub(super) async fn interrupted(
        &self,
        interruption: Interruption,
        testbed: &mut dyn Testbed,
        server: &RunningHalf,
        record: &mut ForkRecord,
    ) -> Result<ForkOutput, AttemptFailure> {
        let client = self.start(testbed, SubjectRole::Client, server.known.clone()).await?;
        record.start_ns.client = Some(client.ready_ns);
        note_versions(record, "client", &client.versions);
        let errand = self.errand(interruption)?;
        let mut host = client.host;
        self.arm_all(&mut host, errand.pages).await?;
        testbed.listen();
        let began_ns = monotonic_ns();
        host.send(&SubjectOrder::Go { t0_ns: began_ns }).await?;
        if !interruption.is_none() {
            errand.half_way(self.settings.patience).await?;
        }

        let struck_ns = monotonic_ns();
        let (host, offline) = self.strike(&errand, testbed, host).await?;
        let mut found = errand.look(offline)?;
        let looked_ns = monotonic_ns();
        let ended = match host {
            Some(host) => self.hear_out(&errand, host).await?,
            None => self.go_on(&errand, found.pages_kept, testbed, server).await?,
        };
        ended.stop().await?;
        errand.whole()?;

        let kept_ns = sample::read_times(&sample::inserted(&self.path(SubjectRole::Client, "")))?;
        let last = kept_ns.last().ok_or_else(|| SubjectError::Wrong("it kept no rows".into()))?;
        let next = kept_ns.iter().find(|time| **time > looked_ns).unwrap_or(last);
        found.silence_ns = if interruption.is_none() { 0 } else { span(struck_ns, *next) };
        let whole = PhaseLatency::of(&[last - began_ns], Origin::Start);
        if let Some(whole) = whole.map_err(|error| SubjectError::Wrong(error.to_string()))? {
            record.latency.insert(phase::SYNC.to_owned(), whole);
        }
        record.interruption = Some(found);
        Ok(ForkOutput { first: Vec::new(), captured: testbed.captured(None), clocks: None })
    }

    fn errand(&self, interruption: Interruption) -> Result<Errand, SubjectError> {
        let factors = self.factors();
        let page = factors.get("page").and_then(|text| text.parse().ok()).unwrap_or(1);
        Ok(Errand {
            interruption,
            pages: self.pages() as u64,
            points: SampleRequest::all(&factors, self.seed()).points(&factors),
            page,
            rows: PointStore::open(&self.path(SubjectRole::Client, ".db"))?,
        })
    }

    async fn arm_all(&self, host: &mut SubjectProcess, pages: u64) -> Result<(), SubjectError> {
        let closed = ExchangeSchedule::Closed { think_ns: 0 };
        host.arm(closed, pages, &self.path(SubjectRole::Client, "")).await
    }

    /// Performs the interruption, and reads the client's rows during it. Returns the client if it is alive.
    async fn strike(
        &self,
        errand: &Errand,
        testbed: &mut dyn Testbed,
        host: SubjectProcess,
    ) -> Result<(Option<SubjectProcess>, Option<(Offline, u64)>), AttemptFailure> {
        let Interruption { cuts, kills } = errand.interruption;
        if cuts {
            testbed.cut(true)?;
        }
        let host = if kills {
            host.kill().await;
            None
        } else {
            Some(host)
        };
        if cuts {
            tokio::time::sleep(CUT_FOR).await;
        }
        let offline = if errand.interruption.is_none() {
            None
        } else {
            let began = monotonic_ns();
            let offline = PointStore::open(&self.path(SubjectRole::Client, ".db"))?.offline()?;
            Some((offline, span(began, monotonic_ns())))
        };
        if cuts {
            testbed.cut(false)?;
        }
        Ok((host, offline))
    }

    /// Waits for the report of a client that was not killed.
    async fn hear_out(
        &self,
        errand: &Errand,
        mut host: SubjectProcess,
    ) -> Result<SubjectProcess, SubjectError> {
        let report = host.hear(&SubjectOrder::Go { t0_ns: 0 }, self.settings.patience).await?;
        let Report::Done { n, errors, digest } = report else {
            return Err(report.instead_of("done"));
        };
        if errors > 0 {
            return Err(SubjectError::Exchange(format!("{errors} of {} pages failed", errand.pages)));
        }
        let right = errand.digest();
        if (n, &digest) != (errand.pages, &right) {
            let sentence = format!("digest {digest} of {n} pages instead of {right}");
            return Err(SubjectError::Wrong(sentence));
        }
        Ok(host)
    }

    /// Restarts the client, which must request the missing pages and no others.
    async fn go_on(
        &self,
        errand: &Errand,
        stored_pages: u64,
        testbed: &mut dyn Testbed,
        server: &RunningHalf,
    ) -> Result<SubjectProcess, AttemptFailure> {
        let mut cell = self.cell.clone();
        cell.settings.insert("sync".into(), "resume".into());
        let again = ForkAttempt { cell: &cell, ..*self };
        let mut host = again.start(testbed, SubjectRole::Client, server.known.clone()).await?.host;
        self.arm_all(&mut host, errand.pages).await?;
        let go = SubjectOrder::Go { t0_ns: monotonic_ns() };
        let report = host.ask_within(&go, self.settings.patience).await?;
        let lacking = errand.pages - stored_pages;
        match report {
            Report::Done { n, errors: 0, .. } if n == lacking => Ok(host),
            Report::Done { n, errors, .. } => {
                let sentence = format!("{n} pages and {errors} failures where {lacking} pages were lacking");
                Err(SubjectError::Wrong(sentence).into())
            }
            other => Err(other.instead_of("done").into()),
        }
    }
}

impl Errand {
    /// Returns the digest of all responses.
    fn digest(&self) -> String {
        let mut digest = Digest::default();
        digest.add(&Content::Points(self.points.clone()));
        digest.hex()
    }

    /// Waits until half of the pages are stored.
    async fn half_way(&self, patience: Duration) -> Result<(), SubjectError> {
        let began = Instant::now();
        while self.rows.pages()? < self.pages / 2 {
            // A complete synchronisation has no pages of an incomplete one.
            if began.elapsed() > patience || !self.rows.is_stale()? {
                return Err(SubjectError::Exchange("it was never seen half way".into()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Checks the rows read during the interruption: whole pages, every point correct, marked as stale.
    fn look(&self, offline: Option<(Offline, u64)>) -> Result<InterruptionOutcome, SubjectError> {
        let found = InterruptionOutcome {
            pages: self.pages,
            pages_kept: self.pages,
            ..InterruptionOutcome::default()
        };
        let Some((offline, offline_ns)) = offline else { return Ok(found) };
        let rows = offline.points.len();
        if !offline.is_stale && offline.points == self.points {
            // This is a delay of the laboratory, not an error of the client.
            return Err(SubjectError::Exchange("it was complete before it could be interrupted".into()));
        }
        if !offline.is_stale {
            return Err(SubjectError::Wrong(format!("{rows} rows of a part are not marked as stale")));
        }
        let whole = (offline.pages as usize * self.page).min(self.points.len());
        if rows != whole || offline.points != self.points[..whole] {
            return Err(SubjectError::Wrong(format!("{rows} rows where {whole} were kept, or others")));
        }
        let pages_kept = offline.pages;
        Ok(InterruptionOutcome { pages_kept, rows_offline: rows as u64, is_stale: true, offline_ns, ..found })
    }

    /// Checks the rows at the end.
    fn whole(&self) -> Result<(), SubjectError> {
        let offline = self.rows.offline()?;
        let is_whole = !offline.is_stale && offline.points == self.points;
        is_whole
            .then_some(())
            .ok_or_else(|| SubjectError::Wrong("its rows are not those of the server".into()))
    }
}

/// Counts pages requested twice, and corrects the byte counts to cover all pages: a killed client does not report its own.
pub(super) fn count(record: &mut ForkRecord, requested_pages: u64) {
    let Some(found) = &mut record.interruption else { return };
    found.pages_again = requested_pages.saturating_sub(found.pages);
    if let Some(bytes) = &mut record.bytes {
        if bytes.exchanges < found.pages {
            bytes.down.app = 0;
        }
        bytes.exchanges = found.pages;
    }
}

fn span(from_ns: i64, until_ns: i64) -> u64 {
    u64::try_from(until_ns - from_ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn errand(directory: &std::path::Path) -> Errand {
        let factors = BTreeMap::from([("poi".to_owned(), "5".to_owned())]);
        Errand {
            interruption: Interruption { cuts: false, kills: true },
            pages: 3,
            points: SampleRequest::all(&factors, 7).points(&factors),
            page: 2,
            rows: PointStore::open(&directory.join("rows.db")).expect("a file"),
        }
    }

    fn offline(errand: &Errand, pages: u64, rows: usize, is_stale: bool) -> Option<(Offline, u64)> {
        Some((Offline { points: errand.points[..rows].to_vec(), pages, is_stale }, 9))
    }

    #[test]
    fn what_is_read_in_the_meantime_is_whole_pages_marked_as_stale() {
        let directory = tempfile::tempdir().expect("a directory");
        let errand = errand(directory.path());
        let found = errand.look(offline(&errand, 2, 4, true)).expect("as it should be");
        let expected = InterruptionOutcome {
            pages: 3,
            pages_kept: 2,
            rows_offline: 4,
            is_stale: true,
            offline_ns: 9,
            ..InterruptionOutcome::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn rows_of_a_part_of_a_page_and_rows_without_a_mark_are_wrong() {
        let directory = tempfile::tempdir().expect("a directory");
        let errand = errand(directory.path());
        for (pages, rows, is_stale) in [(2, 3, true), (1, 4, true), (2, 4, false)] {
            let outcome = errand.look(offline(&errand, pages, rows, is_stale));
            assert!(
                matches!(outcome, Err(SubjectError::Wrong(_))),
                "{pages} pages, {rows} rows: {outcome:?}"
            );
        }
    }

    #[test]
    fn a_client_that_was_done_before_it_could_be_interrupted_is_not_wrong() {
        let directory = tempfile::tempdir().expect("a directory");
        let errand = errand(directory.path());
        let outcome = errand.look(offline(&errand, 3, 5, false));
        assert!(matches!(outcome, Err(SubjectError::Exchange(_))), "{outcome:?}");
    }

    #[test]
    fn what_is_there_in_the_end_must_be_the_servers_rows_and_complete() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut errand = errand(directory.path());
        let points = errand.points.clone();
        errand.rows.keep(0, &points[..4], 2, false).expect("kept");
        assert!(errand.whole().is_err(), "a page is missing");
        errand.rows.keep(4, &points[..1], 3, true).expect("kept");
        assert!(errand.whole().is_err(), "the last row is another");
        errand.rows.keep(4, &points[4..], 3, true).expect("kept");
        errand.whole().expect("whole");
    }
}
