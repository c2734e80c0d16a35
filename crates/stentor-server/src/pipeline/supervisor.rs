//! The supervisor of the pipeline's parts. A part that panics or ends unexpectedly ends the whole pipeline.
//!
//! A pipeline without one of its parts would only seem to work: without a settler, for example, every chunk would be sent repeatedly. A
//! restart recovers by design, so the first failure stops the sending and requests a restart.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A part that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The part that ended.
    pub part: String,
    /// The cause: it returned, failed or panicked.
    pub cause: String,
}

/// Records failed parts, and stops the others after a failure.
pub(crate) struct Supervisor {
    failures: watch::Sender<Vec<Failure>>,
    stop: CancellationToken,
    cut: CancellationToken,
}

impl Supervisor {
    /// Creates a supervisor without failures; the first one cancels both tokens.
    pub(crate) fn new(stop: CancellationToken, cut: CancellationToken) -> Self {
        Self { failures: watch::Sender::default(), stop, cut }
    }

    /// Runs a part that must not end before `stop` is cancelled.
    pub(crate) async fn lasting(
        &self,
        part: impl Into<String>,
        stop: CancellationToken,
        work: impl Future<Output = ()>,
    ) {
        match panic_of(work).await {
            Some(cause) => self.fail(part.into(), cause),
            None if stop.is_cancelled() => {}
            None => self.fail(part.into(), "it stopped unexpectedly".to_owned()),
        }
    }

    /// Runs a part that ends when its work is done.
    pub(crate) async fn passing(&self, part: impl Into<String>, work: impl Future<Output = ()>) {
        if let Some(cause) = panic_of(work).await {
            self.fail(part.into(), cause);
        }
    }

    /// Waits for the end of a part that runs elsewhere, until `stop` is cancelled. `end` resolves to the cause.
    pub(crate) async fn guarding(
        &self,
        part: impl Into<String>,
        stop: CancellationToken,
        end: impl Future<Output = String>,
    ) {
        if let Some(cause) = stop.run_until_cancelled(end).await {
            self.fail(part.into(), cause);
        }
    }

    /// Lists the failures, the earliest first.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.failures.borrow().clone()
    }

    /// Waits for the first failure.
    pub(crate) async fn failed(&self) -> Failure {
        let mut failures = self.failures.subscribe();
        let found = failures.wait_for(|failures| !failures.is_empty()).await;
        let first = found.ok().and_then(|failures| failures.first().cloned());
        match first {
            Some(failure) => failure,
            // The sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }

    /// Records a failure and stops the other parts. Logs it last, because the log itself may have failed.
    fn fail(&self, part: String, cause: String) {
        let failure = Failure { part: part.clone(), cause: cause.clone() };
        self.failures.send_modify(|failures| failures.push(failure));
        self.stop.cancel();
        self.cut.cancel();
        tracing::error!(
            part,
            cause,
            "a part of the pipeline failed: nothing more is sent until the server is started again"
        );
    }
}

async fn panic_of(work: impl Future<Output = ()>) -> Option<String> {
    AssertUnwindSafe(work).catch_unwind().await.err().map(|panic| text_of(&*panic))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or_else(|| "it panicked".to_owned(), |text| format!("it panicked: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Supervisor {
        Supervisor::new(CancellationToken::new(), CancellationToken::new())
    }

    #[tokio::test]
    async fn a_part_that_panics_stops_the_others_and_is_named() {
        let watch = watch();
        watch.passing("dispatcher of fcm", async { panic!("no {}", "luck") }).await;
        assert!(watch.stop.is_cancelled() && watch.cut.is_cancelled());
        let wanted = Failure { part: "dispatcher of fcm".into(), cause: "it panicked: no luck".into() };
        assert_eq!((watch.failed().await, watch.failures()), (wanted.clone(), vec![wanted]));
    }

    /// A log writer that panics.
    struct BrokenLog;

    impl std::io::Write for BrokenLog {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            panic!("the log is broken")
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_failure_that_cannot_be_logged_is_noted_and_stops_the_others() {
        let watch = watch();
        let log = tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(|| BrokenLog).finish());
        // With a single dispatcher, a concurrent test that logs first would query its own thread, which has none, and disable the call site
        // for all threads.
        let _second = tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(std::io::sink).finish());
        let _logging = tracing::dispatcher::set_default(&log);
        let dies = watch.passing("dispatcher of fcm", async { panic!("no luck") });
        assert!(AssertUnwindSafe(dies).catch_unwind().await.is_err(), "the log breaks it");
        assert!(watch.stop.is_cancelled() && watch.cut.is_cancelled());
        assert_eq!(watch.failures()[0].part, "dispatcher of fcm");
    }

    #[tokio::test]
    async fn a_foreign_part_that_ends_has_failed_unless_all_was_told_to_stop() {
        let watch = watch();
        let stop = CancellationToken::new();
        stop.cancel();
        watch.guarding("writer", stop, std::future::pending()).await;
        assert!(watch.failures().is_empty());
        watch.guarding("writer", CancellationToken::new(), async { "it died".to_owned() }).await;
        assert_eq!(watch.failures(), [Failure { part: "writer".into(), cause: "it died".into() }]);
    }

    #[tokio::test]
    async fn a_lasting_part_that_ends_unasked_has_failed_and_one_that_was_told_has_not() {
        let watch = watch();
        let stop_token = CancellationToken::new();
        stop_token.cancel();
        watch.lasting("janitor", stop_token, async {}).await;
        watch.passing("producer", async {}).await;
        assert!(watch.failures().is_empty() && !watch.stop.is_cancelled());
        watch.lasting("janitor", CancellationToken::new(), async {}).await;
        assert_eq!(watch.failures()[0].cause, "it stopped unexpectedly");
    }
}
