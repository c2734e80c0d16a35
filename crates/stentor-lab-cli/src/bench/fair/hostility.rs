//! The requests of the hostile apps, each with the permissions of its key.

use super::apps::{HostileApp, HostileAppCounts, HostileBehaviour, RequestCounters};
use super::sockets;
use bytes::Bytes;
use reqwest::{Body, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stentor_stage::client::{ApiClient, Key};
use tokio::runtime::{Builder, Runtime};

/// Lower priority of the hostile callers than that of the server and the tenth app (nice(2)).
const GIVING_WAY: i32 = 10;
/// Pause after a refusal: a caller that spins on refusals costs the machine more than the server.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// Lines of one heavy import, and the topics of each: as many as a device may have.
const HEAVY_LINES: u64 = 60;
const HEAVY_TOPICS: u64 = 2_000;
/// Number of concurrent callers.
const QUEUE_CALLERS: u64 = 4;
const DRY_RUN_CALLERS: u64 = 16;
const SCHEDULE_CALLERS: u64 = 8;
const GUESSING_CALLERS: u64 = 2;
/// Number of requests for schedules.
const SCHEDULES_MAX_COUNT: u64 = 20_000;
/// Interval of campaigns to large audiences.
const CAMPAIGN_EVERY: Duration = Duration::from_secs(10);

/// All running hostile apps.
pub(super) struct Attack {
    runtime: Runtime,
    counters: Vec<(HostileBehaviour, Arc<RequestCounters>)>,
}

impl Attack {
    /// Starts all hostile apps.
    pub(super) fn begin(apps: &[HostileApp]) -> anyhow::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).on_thread_start(give_way).enable_all().build()?;
        let mut all = Vec::new();
        for app in apps {
            let counters = Arc::new(RequestCounters::default());
            runtime.spawn(act(app.clone(), counters.clone()));
            all.push((app.behaviour, counters));
        }
        Ok(Self { runtime, counters: all })
    }

    /// Ends all hostile apps and returns the outcomes of their requests.
    pub(super) fn end(self) -> Vec<HostileAppCounts> {
        // Without a wait for the callers: one with an open connection would block the bench as well. A request that ends later is in no
        // count or in one, and both are correct.
        self.runtime.shutdown_background();
        let read = |counters: &RequestCounters| {
            [&counters.asked, &counters.done, &counters.refused, &counters.broken]
                .map(|count| count.load(Ordering::Relaxed))
        };
        self.counters
            .into_iter()
            .map(|(behaviour, counters)| HostileAppCounts { behaviour, numbers: read(&counters) })
            .collect()
    }
}

fn give_way() {
    let thread = Some(rustix::thread::gettid());
    let own = rustix::process::getpriority_process(thread).unwrap_or_default();
    // Lowering one's own priority is always allowed; without it, the hostile callers would only compete harder. The value is relative to
    // the bench's own priority: if the bench runs at a higher priority than other programs, a fixed number would leave the callers no
    // processor beside these.
    let _ = rustix::process::setpriority_process(thread, own + GIVING_WAY);
}

async fn act(app: HostileApp, counters: Arc<RequestCounters>) {
    match app.behaviour {
        HostileBehaviour::HeavyImport => import_heavily(app, counters).await,
        HostileBehaviour::NoCredential => fill_the_queue(app, counters).await,
        HostileBehaviour::DryRun => many(DRY_RUN_CALLERS, app, counters, "/v1/messages", dry_run).await,
        HostileBehaviour::SlowUpload => sockets::upload_slowly(app, counters).await,
        HostileBehaviour::Connections => {
            let guesses = many(GUESSING_CALLERS, stranger(&app), counters.clone(), "/v1/messages", single);
            tokio::join!(guesses, sockets::hold_idle(app, counters)).1
        }
        HostileBehaviour::UnfinishedBodies => sockets::leave_unfinished(app, counters).await,
        HostileBehaviour::Schedules => make_schedules(app, counters).await,
        HostileBehaviour::Tarpit | HostileBehaviour::BadAnswers => send_to_everyone(app, counters).await,
    }
}

/// Repeats a request without end, with a number of concurrent callers.
async fn many<B>(callers: u64, app: HostileApp, counters: Arc<RequestCounters>, path: &'static str, body: B)
where
    B: Fn() -> Value + Clone + Send + 'static,
{
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let (app, counters, body) = (app.clone(), counters.clone(), body.clone());
        tasks.spawn(async move {
            loop {
                if !counters.count(app.client.offer(path, &body())).await {
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

/// The same app with a well-formed key that does not exist.
fn stranger(app: &HostileApp) -> HostileApp {
    let key = Key(format!("sk_{}", "A".repeat(43)));
    let client = ApiClient::new(app.client.server(), Some(key), None);
    let client = client.and_then(|client| client.with_source(app.address));
    HostileApp { client: client.unwrap_or_else(|_| app.client.clone()), ..app.clone() }
}

async fn import_heavily(app: HostileApp, counters: Arc<RequestCounters>) {
    let topics: Vec<String> = (0..HEAVY_TOPICS).map(|number| format!("t{number}")).collect();
    let line = |number: u64| {
        json!({"platform": "android", "token": format!("heavy-{number}"), "topics": topics}).to_string()
            + "\n"
    };
    let lines = Bytes::from((0..HEAVY_LINES).map(line).collect::<String>());
    let query = [("format", "ndjson".to_owned())];
    loop {
        let body = Body::from(lines.clone());
        let import = app.client.stream("/v1/devices/import", &query, "application/x-ndjson", body);
        if !counters.count(async { import.await.map(|reply| (StatusCode::OK, reply)) }).await {
            tokio::time::sleep(REFUSED_PAUSE).await;
        }
    }
}

async fn fill_the_queue(app: HostileApp, counters: Arc<RequestCounters>) {
    let body = json!({"platform": "android", "token": "without-credential"});
    let device = app.client.post("/v1/devices", &body).await.map(|device| device["id"].clone());
    let message = json!({"target": {"device": device.unwrap_or_default()}, "data": {"k": "v"}});
    many(QUEUE_CALLERS, app, counters, "/v1/messages", move || message.clone()).await;
}

async fn make_schedules(app: HostileApp, counters: Arc<RequestCounters>) {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..SCHEDULE_CALLERS {
        let (app, counters, next) = (app.clone(), counters.clone(), next.clone());
        tasks.spawn(async move {
            // Relaxed suffices: each number need only be taken once.
            while next.fetch_add(1, Ordering::Relaxed) < SCHEDULES_MAX_COUNT {
                let schedule = json!({"cron": "* * * * *", "time_zone": "UTC", "message": single()});
                if !counters.count(app.client.offer("/v1/schedules", &schedule)).await {
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

async fn send_to_everyone(app: HostileApp, counters: Arc<RequestCounters>) {
    let message = json!({"target": "everyone", "notification": {"title": "to everyone"}});
    loop {
        counters.count(app.client.offer("/v1/messages", &message)).await;
        tokio::time::sleep(CAMPAIGN_EVERY).await;
    }
}
