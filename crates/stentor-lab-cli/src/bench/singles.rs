//! Single messages to tokens, by many concurrent callers.

use crate::caller::HttpCaller;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stentor_lab::statistics::Samples;
use stentor_stage::client::ApiClient;
use stentor_stage::emulator::NOTED_TOKENS;
use stentor_stage::failure::CommandFailure;
use stentor_stage::text::cell;
use tokio::task::JoinSet;

/// Results of the callers.
pub(super) struct SentMessages {
    /// Milliseconds from the request to the 202.
    pub(super) latency_ms: Samples,
    /// Time from the first call to the last 202.
    pub(super) wall: Duration,
    /// The accepted messages.
    pub(super) messages: Vec<AcceptedMessage>,
}

/// A message that was answered with 202.
pub(super) struct AcceptedMessage {
    /// Its token.
    pub(super) token: String,
    /// Its campaign.
    pub(super) campaign: String,
    /// Time of the 202, in microseconds since 1970.
    pub(super) at_us: u128,
}

/// Kind of the callers' requests.
#[derive(Clone, Copy)]
enum RequestKind {
    /// A route without an effect.
    Nothing,
    /// A message to a token of its own, and then a pause.
    Message { first: u64, pause: Option<Duration> },
}

/// Calls a route without an effect, with the same numbers of calls and callers, to measure the cost of the callers, HTTP and the machine.
pub(super) async fn ask_nothing(client: &ApiClient, count: u64, callers: u64) -> anyhow::Result<Duration> {
    Ok(side_by_side(client, count, callers, RequestKind::Nothing).await?.0)
}

/// Sends a message to each of these tokens, with `callers` concurrent callers; `pace` is the pause of a caller between two calls.
pub(super) async fn send(
    client: &ApiClient,
    tokens: Range<u64>,
    callers: u64,
    pace: Option<Duration>,
) -> anyhow::Result<SentMessages> {
    let (first, count) = (tokens.start, tokens.end - tokens.start);
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

/// Makes `count` calls with `callers` concurrent callers, and gathers the answers; the first failure ends it.
async fn side_by_side(
    client: &ApiClient,
    count: u64,
    callers: u64,
    kind: RequestKind,
) -> anyhow::Result<(Duration, Vec<Answered>)> {
    let client = client.clone();
    // One thread for all callers: callers that wake each other's threads cost more than their calls.
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

/// Makes calls until all numbers are taken.
async fn call(
    mut caller: HttpCaller,
    next: Arc<AtomicU64>,
    count: u64,
    kind: RequestKind,
) -> anyhow::Result<Vec<Answered>> {
    let mut seen = Vec::new();
    loop {
        // Relaxed suffices: each number need only be taken once.
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return Ok(seen);
        }
        let started_at = Instant::now();
        let (status, reply) = match kind {
            RequestKind::Nothing => caller.call(Method::GET, "/healthz", bytes::Bytes::new()).await?,
            RequestKind::Message { first, .. } => {
                caller.call(Method::POST, "/v1/messages", message(first + number)).await?
            }
        };
        seen.push(Answered { number, took: started_at.elapsed(), at: SystemTime::now(), reply });
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

/// A message to a unique token.
fn message(number: u64) -> bytes::Bytes {
    let (token, code) = (token(number), number % 1_000_000);
    let text = format!(
        r#"{{"target":{{"token":{{"platform":"apple","token":"{token}"}}}},"notification":{{"title":"Your code","body":"{code:06}"}},"priority":"high","ttl_seconds":300}}"#
    );
    text.into()
}
