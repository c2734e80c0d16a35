//! The tables of features of GCM and FCM. Each cell is an exchange: an app server sends through the front of that service to our own
//! server, and a device of its gateway receives the message or does not.

mod app_server;
mod connection_servers;
mod event_device;
mod scene;
mod trials;

use std::sync::Arc;

use serde::Serialize;

use connection_servers::CONNECTION_SERVER_TRIALS;
use scene::FeatureScene;
use stentor_stage::reporter::Reporter;
use trials::TRIALS;

/// The push service of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum PushServiceFront {
    /// The legacy HTTP API and CCS under its older name.
    Gcm,
    /// The HTTP v1 API and CCS under its newer name.
    Fcm,
}

impl PushServiceFront {
    /// Both tables, the older one first.
    pub(crate) const ALL: [Self; 2] = [Self::Gcm, Self::Fcm];

    /// The name shown to people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gcm => "GCM",
            Self::Fcm => "FCM",
        }
    }

    /// The name under which app servers reach it over CCS.
    pub(crate) const fn ccs_domain(self) -> &'static str {
        match self {
            Self::Gcm => "gcm.googleapis.com",
            Self::Fcm => "fcm.googleapis.com",
        }
    }
}

/// One cell of a table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FeatureRow {
    /// The feature.
    pub(crate) feature: &'static str,
    /// The push service of the table.
    pub(crate) service: PushServiceFront,
    /// `YES` or `NO`.
    pub(crate) answer: &'static str,
    /// The observation behind the answer.
    pub(crate) seen: String,
}

/// The outcome of a trial.
pub(crate) struct TrialOutcome {
    is_there: bool,
    detail: String,
}

impl TrialOutcome {
    fn yes(detail: impl Into<String>) -> Self {
        Self { is_there: true, detail: detail.into() }
    }

    fn no(detail: impl Into<String>) -> Self {
        Self { is_there: false, detail: detail.into() }
    }

    fn when(is_there: bool, detail: impl Into<String>) -> Self {
        Self { is_there, detail: detail.into() }
    }
}

/// Starts a server and tries every feature of both push services. Fails only if the server cannot be set up.
pub(crate) async fn run(reporter: &Arc<dyn Reporter>) -> anyhow::Result<Vec<FeatureRow>> {
    let scene = FeatureScene::open().await?;
    let mut rows = Vec::new();
    for (feature, trial) in TRIALS.into_iter().chain(CONNECTION_SERVER_TRIALS) {
        for service in PushServiceFront::ALL {
            // A trial that fails counts as a missing feature, with the error as its observation.
            let seen =
                trial(&scene, service).await.unwrap_or_else(|error| TrialOutcome::no(format!("{error:#}")));
            let answer = if seen.is_there { "YES" } else { "NO" };
            reporter.line(&format!("{feature}, {}: {answer}", service.name()));
            rows.push(FeatureRow { feature, service, answer, seen: seen.detail });
        }
    }
    Ok(rows)
}
