//! The worker of one app: it claims messages and has each handed over, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use stentor_core::id::AppId;
use stentor_core::ports::store::StoreError;
use stentor_core::upstream::UpstreamMessage;
use stentor_gateway::UpstreamConsumer;
use stentor_gateway::limits::UPSTREAM_WINDOW_MAX_COUNT;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::handover::Handover;
use crate::service::Service;

/// Calls of one app at once.
const APP_CALLS_MAX_COUNT: usize = 4;
/// Wait before the store is asked again that could not answer.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// What became of a message.
enum HandOver {
    TakenOver(UpstreamMessage),
    GivenUp(UpstreamMessage, String),
}

/// What the calls of one app share.
struct AppCalls {
    service: Arc<Service>,
    handover: Handover,
    places: Semaphore,
}

/// An app's messages on their way to whoever takes them over.
pub(super) struct UpstreamWorker {
    consumer: UpstreamConsumer,
    calls: Arc<AppCalls>,
    under_way: JoinSet<HandOver>,
}

impl UpstreamWorker {
    pub(super) fn new(service: Arc<Service>, app: AppId, handover: Handover) -> Self {
        let consumer = service.upstream_broker().consume(app, UPSTREAM_WINDOW_MAX_COUNT);
        let places = Semaphore::new(APP_CALLS_MAX_COUNT);
        let calls = Arc::new(AppCalls { service, handover, places });
        Self { consumer, calls, under_way: JoinSet::new() }
    }

    /// Works until it is dropped.
    pub(super) async fn run(mut self) {
        loop {
            if let Err(error) = self.step().await {
                tracing::warn!(%error, app = %self.consumer.app(), "what devices sent cannot be read or settled");
                sleep(STORE_RETRY).await;
            }
        }
    }

    async fn step(&mut self) -> Result<(), StoreError> {
        tokio::select! {
            Some(ended) = self.under_way.join_next() => match ended {
                Ok(ending) => self.end(ending).await,
                // Its message is held until the worker ends, and comes again then.
                Err(_) => Ok(()),
            },
            found = self.consumer.next() => {
                for message in found? {
                    self.under_way.spawn(Arc::clone(&self.calls).hand_over(message));
                }
                Ok(())
            }
        }
    }

    async fn end(&mut self, ending: HandOver) -> Result<(), StoreError> {
        let settled = match &ending {
            HandOver::TakenOver(message) => self.consumer.settle(&[message.id]).await.map(drop),
            HandOver::GivenUp(message, reason) => {
                tracing::info!(app = %message.app, id = %message.id, reason, "a message of a device is a dead letter");
                self.consumer.bury(message.id, reason).await
            }
        };
        if settled.is_err() {
            // It ends again, after the pause.
            self.under_way.spawn(async { ending });
        }
        settled
    }
}

impl AppCalls {
    /// Tries until a message is taken over, has expired or was tried often enough.
    async fn hand_over(self: Arc<Self>, message: UpstreamMessage) -> HandOver {
        // One that was tried too often by consumers who did not settle it still gets a call of its own.
        let before = message.attempts.min(u32::from(self.handover.policy.max_attempts.saturating_sub(1)));
        let mut attempt = before.saturating_add(1);
        loop {
            let refusal = {
                // Given back before the pause: one that waits must not keep others from their calls.
                let _place = self.places.acquire().await;
                // Asked once there is a place: it may have expired while it waited for one.
                if message.expires_at <= self.service.now() {
                    return HandOver::GivenUp(message, "it expired before anybody took it over".to_owned());
                }
                match self.handover.call(&message, attempt, self.service.now()).await {
                    Ok(()) => return HandOver::TakenOver(message),
                    Err(refusal) => refusal,
                }
            };
            let Some(pause) = self.handover.pause(attempt, refusal.retry_after) else {
                return HandOver::GivenUp(message, refusal.reason);
            };
            tracing::debug!(id = %message.id, attempt, reason = refusal.reason, "a message of a device waits");
            sleep(pause).await;
            attempt += 1;
            if let Err(error) = self.service.note_upstream_attempt(&message).await {
                tracing::warn!(%error, id = %message.id, "an attempt is not counted");
            }
        }
    }
}
