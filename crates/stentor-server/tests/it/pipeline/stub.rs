//! A push service that answers by script, in virtual time.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::id::MessageId;
use stentor_core::outcome::{Outcome, Reason};
use stentor_core::ports::provider::{Batch, Cut, Early, Provider, ProviderStats};
use tokio::sync::watch;
use tokio::time::Instant;

/// One attempt as the push service saw it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) token: String,
    pub(super) message: MessageId,
    pub(super) at: Instant,
}

/// The batches that hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stall {
    Nothing,
    Audiences,
    Everything,
    /// The second half of each batch, after the first was answered.
    Halves,
    /// The last of each batch; the other outcomes are reported early.
    Last,
}

type Script = dyn Fn(&Seen) -> Outcome + Send + Sync;

/// The best rate of answers so far, over spans of a twentieth of a second.
#[derive(Default)]
struct AnswerRate {
    span: Option<(Instant, usize)>,
    best: f64,
}

impl AnswerRate {
    fn count(&mut self, answers: usize) {
        let (began, before) = *self.span.get_or_insert((Instant::now(), 0));
        let (span, count) = (began.elapsed().as_secs_f64(), before + answers);
        if span < 0.05 {
            self.span = Some((began, count));
            return;
        }
        self.best = self.best.max(count as f64 / span);
        self.span = None;
    }
}

/// A scripted provider.
pub(super) struct Stub {
    latency: Duration,
    script: Mutex<Box<Script>>,
    stall: watch::Sender<Stall>,
    seen: Mutex<Vec<Seen>>,
    inflight: Mutex<(usize, usize)>,
    /// True if statistics report the number in flight, which has no limit here.
    tells_inflight: bool,
    rate: Mutex<AnswerRate>,
    warmed: AtomicUsize,
}

impl Stub {
    /// Accepts everything after `latency_ms`.
    pub(super) fn accepting(latency_ms: u64) -> Self {
        Self {
            latency: Duration::from_millis(latency_ms),
            script: Mutex::new(Box::new(|_| Outcome::Accepted)),
            stall: watch::Sender::new(Stall::Nothing),
            seen: Mutex::default(),
            inflight: Mutex::default(),
            tells_inflight: false,
            rate: Mutex::default(),
            warmed: AtomicUsize::new(0),
        }
    }

    /// Accepts everything after `latency_ms`, and reports the number in flight.
    pub(super) fn telling_inflight(latency_ms: u64) -> Self {
        Self { tells_inflight: true, ..Self::accepting(latency_ms) }
    }

    /// Answers by a script from now on.
    pub(super) fn answer(&self, script: impl Fn(&Seen) -> Outcome + Send + Sync + 'static) {
        *self.script.lock().expect("sound") = Box::new(script);
    }

    /// Returns a stub that answers by a script.
    pub(super) fn scripted(
        latency_ms: u64,
        script: impl Fn(&Seen) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        let stub = Self::accepting(latency_ms);
        stub.answer(script);
        stub
    }

    /// Lets batches hang, or go on.
    pub(super) fn stall(&self, stall: Stall) {
        self.stall.send_replace(stall);
    }

    /// Returns all attempts so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("sound").clone()
    }

    /// Counts the attempts by token.
    pub(super) fn counts(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        self.seen().into_iter().for_each(|seen| *counts.entry(seen.token).or_default() += 1);
        counts
    }

    /// Returns the most attempts that were in flight at once.
    pub(super) fn peak(&self) -> usize {
        self.inflight.lock().expect("sound").1
    }

    /// Returns the number of calls to get ready.
    pub(super) fn warmed(&self) -> usize {
        self.warmed.load(Ordering::SeqCst)
    }

    fn note(&self, batch: &Batch) -> Vec<Seen> {
        let (message, at) = (batch.message.id, Instant::now());
        let tokens = batch.tokens.iter().map(|token| Seen { token: token.to_owned(), message, at });
        let seen: Vec<_> = tokens.collect();
        self.seen.lock().expect("sound").extend(seen.iter().cloned());
        let mut inflight = self.inflight.lock().expect("sound");
        inflight.0 += seen.len();
        inflight.1 = inflight.1.max(inflight.0);
        seen
    }
}

#[async_trait]
impl Provider for Stub {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Fcm
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        assert_eq!(batch.devices.len(), batch.tokens.len());
        let seen = self.note(&batch);
        let bulk = batch.message.spec.target.class() == TrafficClass::Bulk;
        let hangs = move |stall: &Stall| *stall == Stall::Everything || bulk && *stall == Stall::Audiences;
        let _ = self.stall.subscribe().wait_for(|stall| !hangs(stall)).await;
        tokio::time::sleep(self.latency).await;
        self.inflight.lock().expect("sound").0 -= seen.len();
        self.rate.lock().expect("sound").count(seen.len());
        let script = self.script.lock().expect("sound");
        seen.iter().map(&**script).collect()
    }

    async fn warm(&self) -> Option<Reason> {
        self.warmed.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.latency).await;
        None
    }

    fn stats(&self) -> ProviderStats {
        let inflight = if self.tells_inflight { self.inflight.lock().expect("sound").0 as u64 } else { 0 };
        let delivery_rate = self.rate.lock().expect("sound").best as u64;
        ProviderStats { latency_floor: self.latency, inflight, delivery_rate, ..ProviderStats::default() }
    }

    async fn send_until(&self, batch: Batch, early: Early<'_>, cut: Cut<'_>) -> Vec<Outcome> {
        let stall = *self.stall.borrow();
        let answered = match (stall, batch.devices.len()) {
            (Stall::Halves, count) => count / 2,
            (Stall::Last, count) => count - 1,
            (_, count) => {
                return tokio::select! {
                    outcomes = self.send(batch) => outcomes,
                    () = cut => vec![Outcome::Unknown; count],
                };
            }
        };
        let seen = self.note(&batch);
        let script = |seen: &Seen| self.script.lock().expect("sound")(seen);
        let mut outcomes: Vec<_> = seen.iter().map(|seen| Some(script(seen))).collect();
        outcomes[answered..].fill(None);
        if stall == Stall::Halves {
            cut.await;
        } else {
            early(outcomes.clone());
            let mut stall = self.stall.subscribe();
            tokio::select! {
                _ = stall.wait_for(|stall| *stall == Stall::Nothing) => {
                    outcomes[answered..].iter_mut().zip(&seen[answered..]).for_each(|(one, seen)| *one = Some(script(seen)));
                }
                () = cut => {}
            }
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Unknown)).collect()
    }
}
