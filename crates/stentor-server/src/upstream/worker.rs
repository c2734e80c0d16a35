//! The worker of one app: claims messages and hands them over, a few at a time. Refused messages wait separately from new ones.

mod resting;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use stentor_core::id::{AppId, DeviceId};
use stentor_core::ports::store::StoreError;
use stentor_core::upstream::UpstreamMessage;
use stentor_gateway::UpstreamConsumer;
use stentor_gateway::limits::UPSTREAM_WINDOW_MAX_COUNT;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::handover::{Handover, HandoverRefusal};
use crate::service::Service;
use resting::{RestingMessage, RestingMessages};

/// Concurrent calls of one app.
const APP_CALLS_MAX_COUNT: usize = 4;
/// Concurrent calls for messages of one device, so that calls for other devices run beside them.
const DEVICE_CALLS_MAX_COUNT: usize = 2;
/// Wait after the store could not answer.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// The result of a handover.
enum HandOver {
    TakenOver,
    GivenUp(String),
    /// Refused, with the number of the attempt.
    Refused(u32, HandoverRefusal),
}

/// A message to be handed over, with the number of its attempt.
struct ReadyMessage {
    message: UpstreamMessage,
    attempt: u32,
}

/// State shared by the calls of one app.
struct AppCalls {
    service: Arc<Service>,
    handover: Handover,
}

/// Hands an app's messages over.
pub(super) struct UpstreamWorker {
    consumer: UpstreamConsumer,
    calls: Arc<AppCalls>,
    ready: VecDeque<ReadyMessage>,
    resting: RestingMessages,
    under_way: JoinSet<(UpstreamMessage, HandOver)>,
    /// Running calls by device.
    busy: HashMap<DeviceId, usize>,
}

impl UpstreamWorker {
    pub(super) fn new(service: Arc<Service>, app: AppId, handover: Handover) -> Self {
        let consumer = service.upstream_broker().consume_by_device(app, UPSTREAM_WINDOW_MAX_COUNT);
        Self {
            consumer,
            calls: Arc::new(AppCalls { service, handover }),
            ready: VecDeque::new(),
            resting: RestingMessages::default(),
            under_way: JoinSet::new(),
            busy: HashMap::new(),
        }
    }

    /// Runs until it is dropped.
    pub(super) async fn run(mut self) {
        loop {
            if let Err(error) = self.step().await {
                tracing::warn!(%error, app = %self.consumer.app(), "the messages of devices cannot be read or settled");
                sleep(STORE_RETRY).await;
            }
        }
    }

    async fn step(&mut self) -> Result<(), StoreError> {
        self.begin_calls();
        // Resting messages do not count in the window; at most a window of them is made ready at a time.
        let next_due = self.resting.next_due().filter(|_| self.ready.len() < UPSTREAM_WINDOW_MAX_COUNT);
        tokio::select! {
            Some(ended) = self.under_way.join_next() => match ended {
                Ok((message, ending)) => self.end(message, ending).await,
                // The call panicked. Its message stays claimed until the worker ends, and is delivered again then.
                Err(_) => Ok(()),
            },
            () = until(next_due) => self.wake().await,
            found = self.consumer.next() => {
                let found = found?.into_iter().map(|message| {
                    // A message that other consumers tried too often without settling it still gets one call.
                    let most = u32::from(self.calls.handover.policy.max_attempts.saturating_sub(1));
                    let attempt = message.attempts.min(most).saturating_add(1);
                    ReadyMessage { message, attempt }
                });
                self.ready.extend(found);
                Ok(())
            }
        }
    }

    /// Starts calls while places are free. The number per device is limited, so that other devices do not wait for it.
    fn begin_calls(&mut self) {
        let most = if self.calls.handover.pace.is_late() { 1 } else { APP_CALLS_MAX_COUNT };
        while self.under_way.len() < most {
            let has_place = |one: &ReadyMessage| {
                self.busy.get(&one.message.device).is_none_or(|calls| *calls < DEVICE_CALLS_MAX_COUNT)
            };
            let Some(place) = self.ready.iter().position(has_place) else { return };
            let Some(ReadyMessage { message, attempt }) = self.ready.remove(place) else { return };
            *self.busy.entry(message.device).or_default() += 1;
            let calls = Arc::clone(&self.calls);
            self.under_way.spawn(async move {
                let ending = calls.hand_over(&message, attempt).await;
                (message, ending)
            });
        }
    }

    async fn end(&mut self, message: UpstreamMessage, ending: HandOver) -> Result<(), StoreError> {
        let settled = match &ending {
            HandOver::TakenOver => self.consumer.settle(&[message.id]).await.map(drop),
            HandOver::GivenUp(reason) => self.bury(&message, reason).await,
            HandOver::Refused(attempt, refusal) => self.rest(&message, *attempt, refusal).await,
        };
        if settled.is_err() {
            // Repeated after the pause.
            self.under_way.spawn(async { (message, ending) });
            return settled;
        }
        if let Some(calls) = self.busy.get_mut(&message.device) {
            *calls -= 1;
            if *calls == 0 {
                self.busy.remove(&message.device);
            }
        }
        settled
    }

    async fn bury(&mut self, message: &UpstreamMessage, reason: &str) -> Result<(), StoreError> {
        tracing::info!(app = %message.app, id = %message.id, reason, "a message of a device is a dead letter");
        self.consumer.bury(message.id, reason).await
    }

    /// Lets a refused message wait for its next attempt, if it has one.
    async fn rest(
        &mut self,
        message: &UpstreamMessage,
        attempt: u32,
        refusal: &HandoverRefusal,
    ) -> Result<(), StoreError> {
        let Some(pause) = self.calls.handover.pause(attempt, refusal.retry_after) else {
            return self.bury(message, &refusal.reason).await;
        };
        tracing::debug!(id = %message.id, attempt, reason = refusal.reason, "a message of a device waits");
        let resting = RestingMessage { id: message.id, attempt, expires_at: message.expires_at };
        if self.resting.add(Instant::now() + pause, resting) {
            self.consumer.rest(message.id);
        }
        Ok(())
    }

    /// Makes the first resting message ready again, or a dead letter if it has expired.
    async fn wake(&mut self) -> Result<(), StoreError> {
        let Some(RestingMessage { id, attempt, expires_at }) = self.resting.first() else { return Ok(()) };
        if expires_at <= self.calls.service.now() {
            self.consumer.bury(id, EXPIRED).await?;
        } else if let Some(message) = self.consumer.again(id).await? {
            self.consumer.note_attempt(id).await?;
            self.ready.push_back(ReadyMessage { message, attempt: attempt.saturating_add(1) });
        }
        // Removed only now, so that it is tried again if the store fails.
        self.resting.remove_first();
        Ok(())
    }
}

const EXPIRED: &str = "it expired before a consumer took it over";

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl AppCalls {
    /// Hands a message over once, unless it has expired.
    async fn hand_over(&self, message: &UpstreamMessage, attempt: u32) -> HandOver {
        match self.handover.call(message, attempt, || self.service.now()).await {
            Ok(true) => HandOver::TakenOver,
            Ok(false) => HandOver::GivenUp(EXPIRED.to_owned()),
            Err(refusal) => HandOver::Refused(attempt, refusal),
        }
    }
}
