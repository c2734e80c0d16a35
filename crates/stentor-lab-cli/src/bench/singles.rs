//! Single messages to tokens, by many callers side by side.

use crate::caller::HttpCaller;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stentor_lab::statistics::Samples;
use stentor_stage::client::ApiClient;
use stentor_stage::emulator::NOTED_TOKENS;
use stentor_stage::failure::CommandFailure;
use stentor_stage::text::cell;
use tokio::task::JoinSet;

/// What the callers saw.
pub(super) struct SentMessages {
    /// Milliseconds from asking to the 202.
    pub(super) latency_ms: Samples,
    /// From the first call to the last 202.
    pub(super) wall: Duration,
    /// What was accepted.
    pub(super) messages: Vec<AcceptedMessage>,
}

/// A message that a 202 accepted.
pub(super) struct AcceptedMessage {
    /// Its token.
    pub(super) token: String,
    /// Its campaign.
    pub(super) campaign: String,
    /// When the 202 had come, in microseconds since 1970.
    pub(super) at_us: u128,
}

/// What callers ask.
#[derive(Clone, Copy)]
enum RequestKind {
    /// A route that does nothing.
    Nothing,
    /// A message to a token of its own, and then a pause.
    Message { first: u64, pause: Option<Duration> },
}

/// Asks a route that does nothing, as often and by as many: what callers, HTTP and the machine cost by themselves.
pub(super) async fn ask_nothing(client: &ApiClient, count: u64, callers: u64) -> anyhow::Result<Duration> {
    Ok(side_by_side(client, count, callers, RequestKind::Nothing).await?.0)
}

/// Asks for `count` messages, each to a token of its own from the `first` on, `callers` at a time; `pace` spreads the calls
/// of one caller.
pub(super) async fn send(
    client: &ApiClient,
    (first, count): (u64, u64),
    callers: u64,
    pace: Option<Duration>,
) -> anyhow::Result<SentMessages> {
    let kind = RequestKind::Message { first, pause: pace };
    let (wall, seen) = side_by_side(client, count, callers, kind).await?;
    let (mut latency_ms, mut messages) = (Samples::default(), Vec::new());
    for Answered { number, took, at, reply } in seen {
        latency_ms.push(took.as_secs_f64() * 1e3);
        messages.push(AcceptedMessage {
            token: token(first + number),
            campaign: cell(&serde_json::from_slice::<Value>(&reply)?["campaign"]),
            at_us: at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros(),
        });
    }
    Ok(SentMessages { latency_ms, wall, messages })
}

/// One answer.
struct Answered {
    number: u64,
    took: Duration,
    at: SystemTime,
    reply: bytes::Bytes,
}

/// Makes the calls 0 to `count`, `callers` at a time, and gathers what they give; the first failure ends it.
async fn side_by_side(
    client: &ApiClient,
    count: u64,
    callers: u64,
    kind: RequestKind,
) -> anyhow::Result<(Duration, Vec<Answered>)> {
    let client = client.clone();
    // One thread for all of them: callers that wake each other's threads cost the machine more than their calls do.
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(on_one_thread(&client, count, callers, kind))
    };
    tokio::task::spawn_blocking(work).await?
}

async fn on_one_thread(
    client: &ApiClient,
    count: u64,
    callers: u64,
    kind: RequestKind,
) -> anyhow::Result<(Duration, Vec<Answered>)> {
    let mut open = Vec::new();
    for _ in 0..callers {
        open.push(crate::caller::open(client).await?);
    }
    let began = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for caller in open {
        tasks.spawn(call(caller, next.clone(), count, kind));
    }
    let mut all = Vec::new();
    while let Some(given) = tasks.join_next().await {
        all.extend(given??);
    }
    Ok((began.elapsed(), all))
}

/// Calls as long as there is something left to ask.
async fn call(
    mut caller: HttpCaller,
    next: Arc<AtomicU64>,
    count: u64,
    kind: RequestKind,
) -> anyhow::Result<Vec<Answered>> {
    let mut seen = Vec::new();
    loop {
        // Each number is handed out once, which is all that is asked of it.
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return Ok(seen);
        }
        let asked = Instant::now();
        let (status, reply) = match kind {
            RequestKind::Nothing => caller.call(Method::GET, "/healthz", bytes::Bytes::new()).await?,
            RequestKind::Message { first, .. } => {
                caller.call(Method::POST, "/v1/messages", message(first + number)).await?
            }
        };
        seen.push(Answered { number, took: asked.elapsed(), at: SystemTime::now(), reply });
        if !matches!(status, StatusCode::OK | StatusCode::ACCEPTED) {
            return Err(CommandFailure::not_done(format!("the server answered {status}")).into());
        }
        if let RequestKind::Message { pause: Some(pause), .. } = kind {
            tokio::time::sleep(pause).await;
        }
    }
}

fn token(number: u64) -> String {
    format!("{NOTED_TOKENS}{:016x}", number + (1 << 40))
}

/// A message to a token that nobody else has.
fn message(number: u64) -> bytes::Bytes {
    let (token, code) = (token(number), number % 1_000_000);
    let text = format!(
        r#"{{"target":{{"token":{{"platform":"apple","token":"{token}"}}}},"notification":{{"title":"Your code","body":"{code:06}"}},"priority":"high","ttl_seconds":300}}"#
    );
    text.into()
}
