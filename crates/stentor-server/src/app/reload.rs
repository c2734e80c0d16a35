//! What is looked at again while the server runs: credentials and certificate.

use std::sync::Arc;
use std::time::Duration;

use stentor_core::ports::clock::Clock;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::listen::{Certificate, CertificateReload};
use crate::pipeline::Pipeline;
use crate::service::Service;

/// Who looks again, and at what.
pub(super) struct Reloads {
    pub(super) service: Arc<Service>,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) certificate: Option<Arc<Certificate>>,
    pub(super) clock: Arc<dyn Clock>,
    /// How often the certificate's files are looked at without a signal.
    pub(super) check_interval: Option<Duration>,
}

impl Reloads {
    /// Looks again at each signal, and at the certificate's files all the time; never ends, so that a closed channel
    /// stops nothing.
    pub(super) async fn follow(&self, signals: mpsc::Receiver<()>) {
        tokio::join!(self.follow_signals(signals), self.follow_files());
        std::future::pending().await
    }

    async fn follow_signals(&self, mut signals: mpsc::Receiver<()>) {
        while signals.recv().await.is_some() {
            if self.look_at_certificate().await == Some(CertificateReload::Same) {
                tracing::info!("certificate looked at again: it is the same");
            }
            self.pipeline.reload().await;
            match self.service.reload_credentials().await {
                Ok(count) => tracing::info!(count, "credentials looked at again"),
                Err(problem) => tracing::warn!(%problem, "credentials could not be looked at again"),
            }
        }
    }

    async fn follow_files(&self) {
        let (Some(interval), true) = (self.check_interval, self.certificate.is_some()) else { return };
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look_at_certificate().await;
        }
    }

    /// Looks away from the runtime's threads: the files may be anywhere.
    async fn look_at_certificate(&self) -> Option<CertificateReload> {
        let (certificate, now) = (self.certificate.clone()?, self.clock.now());
        tokio::task::spawn_blocking(move || certificate.look(now)).await.ok()
    }
}
