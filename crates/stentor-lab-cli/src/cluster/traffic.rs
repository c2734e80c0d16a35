//! Traffic beside the campaign: devices are imported, their topics get campaigns, and tokens get single messages, at any server that
//! answers. Acknowledged requests are recorded, and must hold at the end.

use super::batches;
use super::caller::{AnswerLog, ClusterCaller, ClusterRequest};
use super::promises::{CountedPushes, Promise, PromiseEnd, PromiseFindings, until_ended};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};
use stentor_stage::client::ApiClient;
use stentor_stage::devices::DevicePopulation;
use stentor_stage::text::cell;

/// Devices of one import: the first ones get a campaign to their topic, the others single messages.
const SUBSCRIBED: u64 = 5;
const SINGLE: u64 = 3;
const BATCH: u64 = SUBSCRIBED + SINGLE;
const BATCHES_MAX: u64 = 4_000;
/// Limit of the devices of this traffic.
pub(crate) const DEVICES_MAX: u64 = BATCH * BATCHES_MAX;
const PAUSE: Duration = Duration::from_millis(150);

/// Traffic to the servers, one after the other.
pub(crate) struct SideTraffic {
    /// Calls all servers, acting for an app.
    caller: ClusterCaller,
    /// Devices that nothing else sends to.
    population: DevicePopulation,
    imported: u64,
    promises: Vec<Promise>,
}

/// Log of the answers.
pub(crate) struct TrafficLog {
    /// Imported lines that the servers reported as kept.
    imported: u64,
    promises: Vec<Promise>,
    answers: AnswerLog,
}

/// The outcomes of the traffic.
#[derive(Debug, Default)]
pub(crate) struct TrafficFindings {
    /// Devices that were imported.
    pub(crate) imported: u64,
    /// Messages that were answered with 202.
    pub(crate) messages: u64,
    /// Deliveries of them.
    pub(crate) deliveries: u64,
    /// Devices with no push accepted, or missing in the ledger in spite of the 202.
    pub(crate) lost: u64,
    /// Deliveries without an end.
    pub(crate) stuck: u64,
    /// Pushes accepted beyond the first.
    pub(crate) duplicates: u64,
    /// Highest permitted number of duplicates, by the ledger's bounds and marks.
    pub(crate) duplicate_bound: u64,
    /// Temporary refusals, by their code.
    pub(crate) refused: BTreeMap<String, u64>,
    /// The longest time from the first try to the answer, in seconds.
    pub(crate) slowest_seconds: f64,
    /// Violations that were found.
    pub(crate) broken: Vec<String>,
}

impl SideTraffic {
    /// Prepares the traffic.
    pub(crate) const fn new(caller: ClusterCaller, population: DevicePopulation) -> Self {
        Self { caller, population, imported: 0, promises: Vec::new() }
    }

    /// Sends requests until the faults are over.
    pub(crate) async fn run(mut self) -> TrafficLog {
        for batch in 0..BATCHES_MAX {
            if self.caller.state.is_over() {
                break;
            }
            self.play(batch).await;
            tokio::time::sleep(PAUSE).await;
        }
        let Self { imported, promises, caller, .. } = self;
        TrafficLog { imported, promises, answers: caller.log }
    }

    async fn play(&mut self, batch: u64) {
        let (first, name) = (batch * BATCH, topic(batch));
        let topic_of = |place| (place < first + SUBSCRIBED).then(|| name.clone());
        if !batches::import(&mut self.caller, self.population, first..first + BATCH, topic_of).await {
            return;
        }
        self.imported += BATCH;
        let to_topic = json!({"target": {"topic": name}, "notification": {"body": "to a topic"}});
        self.send(to_topic, first..first + SUBSCRIBED).await;
        for place in first + SUBSCRIBED..first + BATCH {
            let member = self.population.member(place);
            let token =
                json!({"platform": member.service.platform(), "token": self.population.token(member)});
            let single = json!({"target": {"token": token}, "notification": {"body": "to a token"}});
            self.send(single, place..place + 1).await;
        }
    }

    /// Repeats a message until it is answered with 202, and records it.
    async fn send(&mut self, message: Value, places: Range<u64>) {
        let request = ClusterRequest::message(format!("beside-{}", places.start), message);
        if let Some(said) = self.caller.insist(&request).await {
            self.promises.push(Promise::new(cell(&said["campaign"]), places, PromiseEnd::Sent));
        }
    }
}

impl TrafficLog {
    /// Waits until every message that was answered with 202 has ended, or until `limit`.
    pub(crate) async fn until_ended(&mut self, clients: &[ApiClient], limit: Instant) {
        until_ended(&mut self.promises, clients, limit).await;
    }

    /// Compares every message answered with 202 with the push services' counts.
    pub(crate) fn compare(self, counted: &CountedPushes) -> TrafficFindings {
        let found = PromiseFindings::of(&self.promises, counted);
        let PromiseFindings { deliveries, lost, stuck, duplicates, duplicate_bound, mut broken, .. } = found;
        broken.extend(self.answers.broken());
        TrafficFindings {
            imported: self.imported,
            messages: self.promises.len() as u64,
            deliveries,
            lost,
            stuck,
            duplicates,
            duplicate_bound,
            refused: self.answers.refused,
            slowest_seconds: self.answers.slowest.as_secs_f64(),
            broken,
        }
    }
}

impl TrafficFindings {
    /// Returns the findings as an object of the report.
    pub(crate) fn object(&self) -> Value {
        json!({
            "imported": self.imported,
            "messages": self.messages,
            "deliveries": self.deliveries,
            "lost": self.lost,
            "stuck": self.stuck,
            "duplicates": self.duplicates,
            "duplicate_bound": self.duplicate_bound,
            "refused": self.refused,
            "slowest_seconds": stentor_stage::demo::rounded(self.slowest_seconds),
        })
    }
}

fn topic(batch: u64) -> String {
    format!("batch-{batch}")
}
