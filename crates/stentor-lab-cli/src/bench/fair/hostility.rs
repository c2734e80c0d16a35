//! What the hostile apps do, each within what its key allows.

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

/// All hostile apps at work.
pub(super) struct Attack {
    runtime: Runtime,
    counters: Vec<(HostileBehaviour, Arc<RequestCounters>)>,
}

impl Attack {
    /// Lets all of them begin.
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

    /// Ends all of them and returns what became of their requests.
    pub(super) fn end(self) -> Vec<HostileAppCounts> {
        // Nobody is waited for: a caller that holds a connection open would hold the bench up as well. A request that ends
        // after this is in no count or in one, and both are true.
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
    // Always allowed, and where it is not, the hostile callers only compete harder. From where the bench stands: beside other programs
    // a fixed number would leave them no processor at all where the bench goes before these.
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

/// Asks again and again, so many callers side by side.
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

/// The same app with a key that looks right and does not exist.
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
            // Each number is handed out once, which is all that is asked of it.
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
