//! Reloading of credentials and certificate while the server runs.

use std::sync::Arc;
use std::time::Duration;

use stentor_core::ports::clock::Clock;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::listen::{Certificate, CertificateReload};
use crate::pipeline::Pipeline;
use crate::service::Service;

/// The parts that are reloaded, and the interval.
pub(super) struct Reloads {
    pub(super) service: Arc<Service>,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) certificate: Option<Arc<Certificate>>,
    pub(super) clock: Arc<dyn Clock>,
    /// Interval at which the certificate's files are checked without a signal.
    pub(super) check_interval: Option<Duration>,
}

impl Reloads {
    /// Reloads at each signal, and checks the certificate's files at an interval. Never ends, so that a closed channel does not stop the
    /// server.
    pub(super) async fn follow(&self, signals: mpsc::Receiver<()>) {
        tokio::join!(self.follow_signals(signals), self.follow_files());
        std::future::pending().await
    }

    async fn follow_signals(&self, mut signals: mpsc::Receiver<()>) {
        while signals.recv().await.is_some() {
            if self.look_at_certificate().await == Some(CertificateReload::Same) {
                tracing::info!("the certificate was read again: it is unchanged");
            }
            self.pipeline.reload().await;
            match self.service.reload_credentials().await {
                Ok(count) => tracing::info!(count, "the credentials were read again"),
                Err(problem) => tracing::warn!(%problem, "the credentials could not be read again"),
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

    /// Checks the files on a blocking thread, because they may be on a slow file system.
    async fn look_at_certificate(&self) -> Option<CertificateReload> {
        let (certificate, now) = (self.certificate.clone()?, self.clock.now());
        tokio::task::spawn_blocking(move || certificate.look(now)).await.ok()
    }
}
