//! What goes on beside the campaign: devices are imported, their topics get campaigns, and tokens get single messages, at whichever
//! server answers. What was answered is remembered, and must be true at the end.

use super::writing::ANSWER_LIMIT;
use crate::client::{ApiClient, segment};
use crate::devices::{DevicePopulation, Half};
use crate::emulator::Emulators;
use crate::failure::judge;
use crate::ledger::CampaignLedger;
use crate::text::cell;
use reqwest::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stentor_emulators::ObserverFile;

/// Devices of one import: the first ones get a campaign to their topic, the others single messages.
const SUBSCRIBED: u64 = 5;
const SINGLE: u64 = 3;
const BATCH: u64 = SUBSCRIBED + SINGLE;
const BATCHES_MAX: u64 = 4_000;
/// Devices that there may be beside those of the campaign.
pub(crate) const OTHERS_MAX: u64 = BATCH * BATCHES_MAX;
const PAUSE: Duration = Duration::from_millis(150);
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How long something may be refused after all faults are over, and how long a message may need to end then.
const PATIENCE: Duration = Duration::from_secs(120);
/// Answers after which the same is to be asked again.
const LATER: [&str; 4] = ["rate_limited", "queue_full", "unavailable", "request_timeout"];

/// Asks the servers, one after the other.
pub(crate) struct SideTraffic {
    /// All servers, acting for an app.
    pub(crate) clients: Vec<ApiClient>,
    /// Devices that nobody else has.
    pub(crate) population: DevicePopulation,
    /// Told when the last fault is over.
    pub(crate) is_over: Arc<AtomicBool>,
    asked: usize,
    log: TrafficLog,
}

/// What was answered.
#[derive(Default)]
pub(crate) struct TrafficLog {
    /// Lines of imports that were kept, as the servers say.
    imported: u64,
    promises: Vec<Promise>,
    /// Answers that only put off, by their code; what was not answered at all is among them.
    refused: BTreeMap<String, u64>,
    /// Answers that must not be.
    strange: Vec<String>,
    /// The longest time from the first asking to the answer.
    slowest: Duration,
}

/// What is asked, over and over until it is answered: repeating either is harmless.
enum TrafficRequest {
    /// Lines of an import.
    Import(String),
    /// A message with the key of its request.
    Message { key: String, message: Value },
}

impl TrafficRequest {
    async fn ask(&self, client: &ApiClient) -> anyhow::Result<Value> {
        match self {
            Self::Import(lines) => {
                let query = [("format", "ndjson".to_owned())];
                let body = Body::from(lines.clone());
                client.stream("/v1/devices/import", &query, "application/x-ndjson", body).await
            }
            Self::Message { key, message } => client.post_once("/v1/messages", Some(key), message).await,
        }
    }
}

/// A message that was answered with 202.
struct Promise {
    campaign: String,
    places: Range<u64>,
    ledger: CampaignLedger,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct TrafficFindings {
    /// Devices that were imported.
    pub imported: u64,
    /// Messages that were answered with 202.
    pub messages: u64,
    /// Deliveries of them.
    pub deliveries: u64,
    /// Devices whose message is in no push service, or whose 202 is not known to the ledger.
    pub lost: u64,
    /// Deliveries without an end.
    pub stuck: u64,
    /// Pushes accepted beyond the first.
    pub duplicates: u64,
    /// How many there may be, by the ledger's bounds and marks.
    pub duplicate_bound: u64,
    /// Answers that only put off.
    pub refused: BTreeMap<String, u64>,
    /// The longest time from the first asking to the answer, in seconds.
    pub slowest_seconds: f64,
    /// What must not be.
    pub broken: Vec<String>,
}

impl SideTraffic {
    /// Prepares to ask.
    pub(crate) fn new(
        clients: Vec<ApiClient>,
        population: DevicePopulation,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        Self { clients, population, is_over, asked: 0, log: TrafficLog::default() }
    }

    /// Asks until the faults are over.
    pub(crate) async fn run(mut self) -> TrafficLog {
        for batch in 0..BATCHES_MAX {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            self.play(batch).await;
            tokio::time::sleep(PAUSE).await;
        }
        self.log
    }

    async fn play(&mut self, batch: u64) {
        if !self.import(batch).await {
            return;
        }
        let first = batch * BATCH;
        let topic = json!({"target": {"topic": topic(batch)}, "notification": {"body": "to a topic"}});
        self.send(topic, first..first + SUBSCRIBED).await;
        for place in first + SUBSCRIBED..first + BATCH {
            let member = self.population.member(place);
            let token = json!({"platform": member.half.platform(), "token": self.population.token(member)});
            let single = json!({"target": {"token": token}, "notification": {"body": "to a token"}});
            self.send(single, place..place + 1).await;
        }
    }

    /// Imports devices, over and over until all are kept; returns whether they are.
    async fn import(&mut self, batch: u64) -> bool {
        let mut lines = String::new();
        for place in batch * BATCH..(batch + 1) * BATCH {
            let member = self.population.member(place);
            let topics = if place % BATCH < SUBSCRIBED { vec![topic(batch)] } else { Vec::new() };
            let device = json!({"platform": member.half.platform(), "token": self.population.token(member), "topics": topics});
            lines.push_str(&format!("{device}\n"));
        }
        let Some(said) = self.insist(TrafficRequest::Import(lines)).await else { return false };
        let is_kept = said["failed"] == 0 && said["valid"] == BATCH;
        if is_kept {
            self.log.imported += BATCH;
        } else {
            self.log.strange.push(format!("an import: {said}"));
        }
        is_kept
    }

    /// Sends a message, over and over until there is a 202, and remembers it.
    async fn send(&mut self, message: Value, places: Range<u64>) {
        let key = format!("beside-{}", places.start);
        if let Some(said) = self.insist(TrafficRequest::Message { key, message }).await {
            let promise =
                Promise { campaign: cell(&said["campaign"]), places, ledger: CampaignLedger::default() };
            self.log.promises.push(promise);
        }
    }

    /// Asks one server after the other until there is an answer.
    async fn insist(&mut self, request: TrafficRequest) -> Option<Value> {
        let begun = Instant::now();
        loop {
            self.asked += 1;
            let client = self.clients[self.asked % self.clients.len()].clone();
            let word = match tokio::time::timeout(ANSWER_LIMIT, request.ask(&client)).await {
                Ok(Ok(said)) => {
                    self.log.slowest = self.log.slowest.max(begun.elapsed());
                    return Some(said);
                }
                Ok(Err(error)) => match judge(&error).1 {
                    Some(code) if !LATER.contains(&code) => {
                        self.log.strange.push(format!("{error:#}"));
                        return None;
                    }
                    code => code.unwrap_or("unreachable").to_owned(),
                },
                Err(_) => "no_answer".to_owned(),
            };
            *self.log.refused.entry(word.clone()).or_default() += 1;
            if self.is_over.load(Ordering::Relaxed) && begun.elapsed() > PATIENCE {
                self.log.strange.push(format!("nothing was taken within {PATIENCE:?}: {word}"));
                return None;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

impl TrafficLog {
    /// Waits until every message that was answered with 202 has ended.
    pub(crate) async fn until_ended(&mut self, client: &ApiClient) {
        let begun = Instant::now();
        for promise in &mut self.promises {
            while let Ok((_, ledger)) = CampaignLedger::fetch(client, &segment(&promise.campaign)).await {
                promise.ledger = ledger;
                if promise.ledger.is_ended() || begun.elapsed() > PATIENCE {
                    break;
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    /// Compares every message that was answered with 202 with what the push services have counted.
    pub(crate) fn compare(
        self,
        population: DevicePopulation,
        emulators: &Emulators,
    ) -> anyhow::Result<TrafficFindings> {
        let books = Half::BOTH.map(|half| emulators.of(half).counted());
        let [fcm, apns] = books;
        let (fcm, apns) = (fcm?, apns?);
        let mut findings = TrafficFindings {
            imported: self.imported,
            messages: self.promises.len() as u64,
            refused: self.refused,
            slowest_seconds: self.slowest.as_secs_f64(),
            ..TrafficFindings::default()
        };
        for promise in &self.promises {
            findings.judge(promise, population, [&fcm, &apns]);
        }
        if let Some(first) = self.strange.first() {
            findings
                .broken
                .push(format!("{} answers must not be, the first is: {first}", self.strange.len()));
        }
        Ok(findings)
    }
}

impl TrafficFindings {
    fn judge(&mut self, promise: &Promise, population: DevicePopulation, [fcm, apns]: [&ObserverFile; 2]) {
        let Promise { campaign, places, ledger } = promise;
        let devices = places.end - places.start;
        let (mut accepted, mut unseen, mut twice, mut extra) = (0, 0, 0, 0);
        for member in places.clone().map(|place| population.member(place)) {
            let book = if member.half == Half::Fcm { fcm } else { apns };
            let counts = book.lookup(&population.token(member));
            accepted += u64::from(counts.accepted > 0);
            unseen += u64::from(counts.accepted == 0 && counts.rejected == 0);
            twice += u64::from(counts.accepted > 1);
            extra += u64::from(counts.accepted.saturating_sub(1));
        }
        let reasons: Vec<_> = ledger.providers.iter().flat_map(|books| &books.reasons).collect();
        self.deliveries += devices;
        self.lost += unseen.max(devices.saturating_sub(ledger.audience));
        self.stuck += ledger.totals.open();
        self.duplicates += extra;
        // What a push service never answered may be there twice as well, and is marked.
        self.duplicate_bound += ledger.duplicate_bound.max(ledger.ambiguous);
        let checks = [
            (
                ledger.audience != devices,
                format!("its audience is {} devices, not {devices}", ledger.audience),
            ),
            (!ledger.is_ended(), format!("it is {} and has no end", ledger.state_text())),
            (!(ledger.balanced && ledger.sums_up()), "its books do not balance".to_owned()),
            (
                ledger.totals.accepted != accepted,
                format!(
                    "the push services accepted {accepted}, the ledger has {:?}: {reasons:?}",
                    ledger.totals
                ),
            ),
            (unseen > 0, format!("{unseen} devices got nothing")),
            (
                twice > ledger.ambiguous,
                format!("{twice} devices got it twice, {} are marked", ledger.ambiguous),
            ),
        ];
        let wrong = checks.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, why)| why);
        self.broken.extend(wrong.map(|why| format!("the message {campaign} beside: {why}")));
    }

    /// The findings as an object of the report.
    pub fn object(&self) -> Value {
        json!({
            "imported": self.imported,
            "messages": self.messages,
            "deliveries": self.deliveries,
            "lost": self.lost,
            "stuck": self.stuck,
            "duplicates": self.duplicates,
            "duplicate_bound": self.duplicate_bound,
            "refused": self.refused,
            "slowest_seconds": crate::demo::rounded(self.slowest_seconds),
        })
    }
}

fn topic(batch: u64) -> String {
    format!("batch-{batch}")
}
