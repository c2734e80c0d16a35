//! The hostile apps: their behaviours, the addresses of their callers, and the outcomes of their requests.

use reqwest::StatusCode;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use stentor_stage::client::ApiClient;

/// Behaviour of a hostile app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostileBehaviour {
    /// Imports lines of 2,000 topics.
    HeavyImport,
    /// Sends to a device of a provider for which it has no credential.
    NoCredential,
    /// Counts a large audience, with 16 concurrent callers.
    DryRun,
    /// Uploads imports by a byte a second.
    SlowUpload,
    /// Holds idle connections and guesses keys.
    Connections,
    /// Leaves the bodies of its requests unfinished.
    UnfinishedBodies,
    /// Creates as many schedules as permitted, each due every minute.
    Schedules,
    /// Sends to an audience with a push service that answers after 5 to 20 seconds.
    Tarpit,
    /// Sends to an audience in which no device can be reached.
    BadAnswers,
}

impl HostileBehaviour {
    /// All behaviours, in the order in which their apps are made.
    pub(crate) const ALL: [Self; 9] = [
        Self::HeavyImport,
        Self::NoCredential,
        Self::DryRun,
        Self::SlowUpload,
        Self::Connections,
        Self::UnfinishedBodies,
        Self::Schedules,
        Self::Tarpit,
        Self::BadAnswers,
    ];

    /// Its name on the command line and in the report.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::HeavyImport => "heavy-import",
            Self::NoCredential => "no-credential",
            Self::DryRun => "dry-run",
            Self::SlowUpload => "slow-upload",
            Self::Connections => "connections",
            Self::UnfinishedBodies => "unfinished-bodies",
            Self::Schedules => "schedules",
            Self::Tarpit => "tarpit",
            Self::BadAnswers => "bad-answers",
        }
    }

    /// Returns its description for the command line's help.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::HeavyImport => "Imports lines of 2,000 topics",
            Self::NoCredential => "Sends to a device of a provider for which it has no credential",
            Self::DryRun => "Counts a large audience, 16 callers side by side",
            Self::SlowUpload => "Uploads imports by a byte a second",
            Self::Connections => "Holds idle connections and guesses keys",
            Self::UnfinishedBodies => "Leaves the bodies of its requests unfinished",
            Self::Schedules => "Has as many schedules as it may, each due every minute",
            Self::Tarpit => "Sends to an audience whose push service answers after 5 to 20 seconds",
            Self::BadAnswers => "Sends to an audience of which no device can be reached",
        }
    }
}

/// A hostile app and the address of its callers.
#[derive(Clone)]
pub(super) struct HostileApp {
    pub(super) behaviour: HostileBehaviour,
    pub(super) id: String,
    pub(super) key: String,
    pub(super) address: IpAddr,
    pub(super) client: ApiClient,
}

/// Outcomes of the requests of one hostile app, so far.
#[derive(Default)]
pub(super) struct RequestCounters {
    pub(super) asked: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) broken: AtomicU64,
}

impl RequestCounters {
    /// Counts a request before it is made, and its outcome afterwards; returns true if the outcome is good.
    pub(super) async fn count(
        &self,
        call: impl Future<Output = anyhow::Result<(StatusCode, Value)>>,
    ) -> bool {
        // Relaxed suffices: the sums are read after the callers have ended, and need not be consistent before.
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.note(&call.await)
    }

    /// Counts an answer; returns true if it is good.
    fn note(&self, answer: &anyhow::Result<(StatusCode, Value)>) -> bool {
        let counter = match answer {
            Ok((status, _)) if status.is_success() => &self.done,
            Ok(_) => &self.refused,
            Err(_) => &self.broken,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        std::ptr::eq(counter, &raw const self.done)
    }
}

/// Outcomes of the requests of one hostile app, at its end.
pub(crate) struct HostileAppCounts {
    /// Behaviour of the app.
    pub(crate) behaviour: HostileBehaviour,
    /// Requests made, done, refused and broken.
    pub(crate) numbers: [u64; 4],
}

impl HostileAppCounts {
    /// Returns them as an object.
    pub(crate) fn object(&self) -> Value {
        let [requested, done, refused, broken] = self.numbers;
        json!({"kind": self.behaviour.word(), "asked": requested, "done": done, "refused": refused, "broken": broken})
    }
}
