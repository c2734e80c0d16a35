//! Hands what devices send to the operator's command: at least once, again after a pause, and on the list of dead letters when
//! it is not taken over.

mod command;
mod handover;
mod worker;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use stentor_core::id::AppId;
use stentor_core::retry::RetryPolicy;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::UpstreamConfig;
use crate::contract::ServiceResult;
use crate::service::Service;
use command::OperatorCommand;
use handover::Handover;
use worker::UpstreamWorker;

/// Time from one look at the apps to the next.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Calls at once, of all apps.
const CALLS_MAX_COUNT: usize = 64;

/// Runs a worker for each app, where there is a command.
pub(crate) struct UpstreamWorkers {
    service: Arc<Service>,
    command: Option<OperatorCommand>,
    policy: RetryPolicy,
    places: Arc<Semaphore>,
    running: HashMap<AppId, AbortOnDropHandle<()>>,
}

impl UpstreamWorkers {
    /// Takes what an operator has set.
    pub(crate) fn new(service: Arc<Service>, config: &UpstreamConfig) -> Self {
        let policy = RetryPolicy {
            base: Duration::from_millis(config.retry_base_ms),
            max_attempts: config.attempts_max_count,
            ..RetryPolicy::default()
        };
        let command = OperatorCommand::new(&config.command, Duration::from_secs(config.timeout_seconds));
        let places = Arc::new(Semaphore::new(CALLS_MAX_COUNT));
        Self { service, command, policy, places, running: HashMap::new() }
    }

    /// Works until `stop`; what is under way then is handed over again after the next start.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let Some(command) = self.command.take() else { return };
        while !stop.is_cancelled() {
            if let Err(error) = self.look(&command).await {
                tracing::warn!(%error, "the apps cannot be read whose devices may have sent something");
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(LOOK_INTERVAL) => {}
            }
        }
    }

    /// Starts a worker where one is missing, and ends those of apps that are gone.
    async fn look(&mut self, command: &OperatorCommand) -> ServiceResult<()> {
        let apps: HashSet<AppId> = self.service.all_apps().await?.into_iter().collect();
        self.running.retain(|app, task| apps.contains(app) && !task.is_finished());
        for app in apps {
            self.running.entry(app).or_insert_with(|| {
                let (command, places) = (command.clone(), Arc::clone(&self.places));
                let handover = Handover { command, places, policy: self.policy };
                let worker = UpstreamWorker::new(Arc::clone(&self.service), app, handover);
                AbortOnDropHandle::new(tokio::spawn(worker.run()))
            });
        }
        Ok(())
    }
}
