//! Delivery of upstream messages to the webhook of their app or to the operator's command: at least once, with retries, and to the dead
//! letters if they are not accepted.

mod call_places;
mod command;
mod handover;
mod webhook;
mod worker;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use stentor_core::id::AppId;
use stentor_core::retry::RetryPolicy;
use stentor_core::upstream::UpstreamWebhook;
use stentor_providers::Outbound;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::UpstreamConfig;
use crate::contract::ServiceResult;
use crate::pipeline::NodeStanding;
use crate::service::Service;
use call_places::{CallPace, CallPlaces};
use command::OperatorCommand;
use handover::{Handover, HandoverTarget};
use webhook::Webhook;
use worker::UpstreamWorker;

/// Interval for reading the apps; webhooks put at this server are noticed at once.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Concurrent calls of all apps that answer in time, and as many of the slow ones.
const CALLS_MAX_COUNT: usize = 64;

/// A worker and its webhook; `None` for the operator's command.
struct RunningWorker {
    webhook: Option<UpstreamWebhook>,
    task: AbortOnDropHandle<()>,
}

/// Runs a worker for each app with a webhook, and for all others if there is a command.
pub(crate) struct UpstreamWorkers {
    service: Arc<Service>,
    command: Option<OperatorCommand>,
    outbound: Outbound,
    timeout: Duration,
    policy: RetryPolicy,
    places: Arc<CallPlaces>,
    running: HashMap<AppId, RunningWorker>,
    standing: Arc<NodeStanding>,
}

impl UpstreamWorkers {
    /// Applies the operator's settings.
    pub(crate) fn new(service: Arc<Service>, config: &UpstreamConfig, standing: Arc<NodeStanding>) -> Self {
        let policy = RetryPolicy {
            base: Duration::from_millis(config.retry_base_ms),
            max_attempts: config.attempts_max_count,
            ..RetryPolicy::default()
        };
        let timeout = Duration::from_secs(config.timeout_seconds);
        let command = OperatorCommand::new(&config.command, config.environment_of_command(), timeout);
        let outbound = Outbound::new(service.webhook_policy().clone());
        let (places, running) = (CallPlaces::new(CALLS_MAX_COUNT), HashMap::new());
        Self { service, command, outbound, timeout, policy, places, running, standing }
    }

    /// Runs until `stop`. Interrupted calls are repeated after the next start.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "the apps with messages from devices cannot be read");
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.service.webhooks_changed().notified() => {}
                () = sleep(LOOK_INTERVAL) => {}
            }
        }
    }

    /// Starts missing workers, and ends those of removed or changed apps and webhooks.
    async fn look(&mut self) -> ServiceResult<()> {
        // Only one of several nodes does this; otherwise all of them would hand over each message.
        if !self.standing.is_first() {
            self.running.clear();
            return Ok(());
        }
        let webhooks = self.service.webhooks().await?;
        let mut wanted: HashMap<AppId, Option<UpstreamWebhook>> = HashMap::new();
        if self.command.is_some() {
            wanted.extend(self.service.all_apps().await?.into_iter().map(|app| (app, None)));
        }
        wanted.extend(webhooks.into_iter().map(|webhook| (webhook.app, Some(webhook))));
        // A worker that has ended by itself is also restarted, and its messages are free again.
        self.running.retain(|app, worker| {
            wanted.get(app).is_some_and(|webhook| *webhook == worker.webhook) && !worker.task.is_finished()
        });
        for (app, webhook) in wanted {
            if !self.running.contains_key(&app)
                && let Some(worker) = self.start(app, webhook)
            {
                self.running.insert(app, worker);
            }
        }
        Ok(())
    }

    fn start(&self, app: AppId, webhook: Option<UpstreamWebhook>) -> Option<RunningWorker> {
        let target = match &webhook {
            Some(webhook) => match Webhook::new(webhook, &self.outbound, self.timeout) {
                Ok(webhook) => HandoverTarget::Webhook(Box::new(webhook)),
                Err(reason) => {
                    tracing::warn!(%app, ?reason, "a webhook cannot be used: put it again");
                    return None;
                }
            },
            None => HandoverTarget::Command(self.command.clone()?),
        };
        let (places, pace) = (Arc::clone(&self.places), CallPace::default());
        let handover = Handover { target, places, pace, policy: self.policy };
        let worker = UpstreamWorker::new(Arc::clone(&self.service), app, handover);
        let task = AbortOnDropHandle::new(tokio::spawn(worker.run()));
        Some(RunningWorker { webhook, task })
    }
}
