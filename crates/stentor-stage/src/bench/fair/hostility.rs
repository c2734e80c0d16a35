//! What the hostile apps do, each within what its key allows.

use super::sockets;
use crate::client::{Client, Key};
use bytes::Bytes;
use reqwest::{Body, StatusCode};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How much the hostile callers give way to the server and the tenth app (nice(2)).
const GIVING_WAY: i32 = 10;
/// Wait after a refusal: a caller that spins on refusals costs the machine more than the server.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// Lines of one heavy import, and the topics of each: as many as a device may have.
const HEAVY_LINES: u64 = 60;
const HEAVY_TOPICS: u64 = 2_000;
/// Callers side by side.
const QUEUE_CALLERS: u64 = 4;
const DRY_RUN_CALLERS: u64 = 16;
const SCHEDULE_CALLERS: u64 = 8;
const GUESSING_CALLERS: u64 = 2;
/// Schedules that are asked for.
const SCHEDULES_MAX_COUNT: u64 = 20_000;
/// How often campaigns to large audiences are asked for.
const CAMPAIGN_EVERY: Duration = Duration::from_secs(10);

/// What a hostile app does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Imports lines of 2,000 topics.
    HeavyImport,
    /// Sends to a device of a provider for which it has no credential.
    NoCredential,
    /// Counts a large audience, 16 callers side by side.
    DryRun,
    /// Uploads imports by a byte a second.
    SlowUpload,
    /// Holds idle connections and guesses keys.
    Connections,
    /// Leaves the bodies of its requests unfinished.
    UnfinishedBodies,
    /// Has as many schedules as it may, each due every minute.
    Schedules,
    /// Sends to an audience whose push service answers after 5 to 20 seconds.
    Tarpit,
    /// Sends to an audience of which no device can be reached.
    BadAnswers,
}

impl Kind {
    /// All kinds, in the order in which their apps are made.
    pub const ALL: [Self; 9] = [
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
    pub const fn word(self) -> &'static str {
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
}

/// A hostile app and where its callers come from.
#[derive(Clone)]
pub(super) struct Tenant {
    pub(super) kind: Kind,
    pub(super) app: String,
    pub(super) key: String,
    pub(super) address: IpAddr,
    pub(super) client: Client,
}

/// What became of the requests of one hostile app.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) asked: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) broken: AtomicU64,
}

impl Tally {
    /// Counts a request before it is made, and notes what came of it; returns whether that was good.
    async fn count(&self, call: impl Future<Output = anyhow::Result<(StatusCode, Value)>>) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.note(&call.await)
    }

    /// Notes an answer, and whether it was a good one.
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

/// What became of the requests of one hostile app, at its end.
pub struct Count {
    /// What it did.
    pub kind: Kind,
    /// Asked, done, refused, broken.
    pub numbers: [u64; 4],
}

impl Count {
    /// Returns them as an object.
    pub fn object(&self) -> Value {
        let [asked, done, refused, broken] = self.numbers;
        json!({"kind": self.kind.word(), "asked": asked, "done": done, "refused": refused, "broken": broken})
    }
}

/// All hostile apps at work.
pub(super) struct Attack {
    runtime: Runtime,
    tallies: Vec<(Kind, Arc<Tally>)>,
}

impl Attack {
    /// Lets all of them begin.
    pub(super) fn begin(tenants: &[Tenant]) -> anyhow::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).on_thread_start(give_way).enable_all().build()?;
        let mut tallies = Vec::new();
        for tenant in tenants {
            let tally = Arc::new(Tally::default());
            runtime.spawn(act(tenant.clone(), tally.clone()));
            tallies.push((tenant.kind, tally));
        }
        Ok(Self { runtime, tallies })
    }

    /// Ends all of them and returns what became of their requests.
    pub(super) fn end(self) -> Vec<Count> {
        self.runtime.shutdown_background();
        let read = |tally: &Tally| {
            [&tally.asked, &tally.done, &tally.refused, &tally.broken]
                .map(|count| count.load(Ordering::Relaxed))
        };
        self.tallies.into_iter().map(|(kind, tally)| Count { kind, numbers: read(&tally) }).collect()
    }
}

fn give_way() {
    // Always allowed, and where it is not, the hostile callers only compete harder.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), GIVING_WAY);
}

async fn act(tenant: Tenant, tally: Arc<Tally>) {
    match tenant.kind {
        Kind::HeavyImport => import_heavily(tenant, tally).await,
        Kind::NoCredential => fill_the_queue(tenant, tally).await,
        Kind::DryRun => many(DRY_RUN_CALLERS, tenant, tally, "/v1/messages", dry_run).await,
        Kind::SlowUpload => sockets::upload_slowly(tenant, tally).await,
        Kind::Connections => {
            let guesses = many(GUESSING_CALLERS, stranger(&tenant), tally.clone(), "/v1/messages", single);
            tokio::join!(guesses, sockets::hold_idle(tenant, tally)).1
        }
        Kind::UnfinishedBodies => sockets::leave_unfinished(tenant, tally).await,
        Kind::Schedules => make_schedules(tenant, tally).await,
        Kind::Tarpit | Kind::BadAnswers => send_to_everyone(tenant, tally).await,
    }
}

/// Asks again and again, so many callers side by side.
async fn many<B>(callers: u64, tenant: Tenant, tally: Arc<Tally>, path: &'static str, body: B)
where
    B: Fn() -> Value + Clone + Send + 'static,
{
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (tenant, tally, body) = (tenant.clone(), tally.clone(), body.clone());
        tasks.spawn(async move {
            loop {
                if !tally.count(tenant.client.offer(path, &body())).await {
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

fn dry_run() -> Value {
    json!({
        "target": {"condition": "'all' in topics && !('none' in topics)"},
        "notification": {"title": "how many"},
        "dry_run": true,
    })
}

fn single() -> Value {
    json!({
        "target": {"token": {"platform": "android", "provider": "null", "token": "anybody"}},
        "data": {"k": "v"},
    })
}

/// The same app with a key that looks right and does not exist.
fn stranger(tenant: &Tenant) -> Tenant {
    let key = Key(format!("sk_{}", "A".repeat(43)));
    let client = Client::new(tenant.client.server(), Some(key), None);
    let client = client.and_then(|client| client.with_source(tenant.address));
    Tenant { client: client.unwrap_or_else(|_| tenant.client.clone()), ..tenant.clone() }
}

async fn import_heavily(tenant: Tenant, tally: Arc<Tally>) {
    let topics: Vec<String> = (0..HEAVY_TOPICS).map(|number| format!("t{number}")).collect();
    let line = |number: u64| {
        json!({"platform": "android", "token": format!("heavy-{number}"), "topics": topics}).to_string()
            + "\n"
    };
    let lines = Bytes::from((0..HEAVY_LINES).map(line).collect::<String>());
    let query = [("format", "ndjson".to_owned())];
    loop {
        let body = Body::from(lines.clone());
        let import = tenant.client.stream("/v1/devices/import", &query, "application/x-ndjson", body);
        if !tally.count(async { import.await.map(|reply| (StatusCode::OK, reply)) }).await {
            tokio::time::sleep(REFUSED_PAUSE).await;
        }
    }
}

async fn fill_the_queue(tenant: Tenant, tally: Arc<Tally>) {
    let body = json!({"platform": "android", "token": "without-credential"});
    let device = tenant.client.post("/v1/devices", &body).await.map(|device| device["id"].clone());
    let message = json!({"target": {"device": device.unwrap_or_default()}, "data": {"k": "v"}});
    many(QUEUE_CALLERS, tenant, tally, "/v1/messages", move || message.clone()).await;
}

async fn make_schedules(tenant: Tenant, tally: Arc<Tally>) {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..SCHEDULE_CALLERS {
        let (tenant, tally, next) = (tenant.clone(), tally.clone(), next.clone());
        tasks.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < SCHEDULES_MAX_COUNT {
                let schedule = json!({"cron": "* * * * *", "time_zone": "UTC", "message": single()});
                if !tally.count(tenant.client.offer("/v1/schedules", &schedule)).await {
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

async fn send_to_everyone(tenant: Tenant, tally: Arc<Tally>) {
    let message = json!({"target": "everyone", "notification": {"title": "to everyone"}});
    loop {
        tally.count(tenant.client.offer("/v1/messages", &message)).await;
        tokio::time::sleep(CAMPAIGN_EVERY).await;
    }
}
