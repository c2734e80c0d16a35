//! Single messages to tokens, by many callers side by side.

use crate::client::Client;
use crate::output::cell;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use tokio::task::JoinSet;

/// What the callers saw.
pub(super) struct Sent {
    /// Milliseconds from asking to the 202.
    pub(super) latency_ms: Samples,
    /// From the first call to the last 202.
    pub(super) wall: Duration,
    /// The campaigns that were promised.
    pub(super) campaigns: Vec<String>,
}

/// Asks a route that does nothing, as often and by as many: what callers, HTTP and the machine cost by themselves.
pub(super) async fn ask_nothing(client: &Client, count: u64, callers: u64) -> anyhow::Result<Duration> {
    let client = client.clone();
    let began = Instant::now();
    let asked = side_by_side(count, callers, move |_| {
        let client = client.clone();
        async move { client.probe("/healthz").await.map(drop) }
    });
    asked.await?;
    Ok(began.elapsed())
}

/// Asks for `count` messages, each to a token of its own, `callers` at a time; `pace` spreads the calls of one caller.
pub(super) async fn send(
    client: &Client,
    count: u64,
    callers: u64,
    pace: Option<Duration>,
) -> anyhow::Result<Sent> {
    let client = client.clone();
    let began = Instant::now();
    let seen = side_by_side(count, callers, move |number| {
        let client = client.clone();
        async move {
            let asked = Instant::now();
            let reply = client.post("/v1/messages", &message(number)).await?;
            let took = asked.elapsed();
            if let Some(pace) = pace {
                tokio::time::sleep(pace).await;
            }
            anyhow::Ok((took, cell(&reply["campaign"])))
        }
    });
    let (mut latency_ms, mut campaigns) = (Samples::default(), Vec::new());
    for (took, campaign) in seen.await? {
        latency_ms.push(took.as_secs_f64() * 1e3);
        campaigns.push(campaign);
    }
    Ok(Sent { latency_ms, wall: began.elapsed(), campaigns })
}

/// Makes the calls 0 to `count`, `callers` at a time, and gathers what they give; the first failure ends it.
async fn side_by_side<T, F>(
    count: u64,
    callers: u64,
    call: impl Fn(u64) -> F + Clone + Send + 'static,
) -> anyhow::Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = anyhow::Result<T>> + Send,
{
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (call, next) = (call.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            let mut given = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(given);
                }
                given.push(call(number).await?);
            }
        });
    }
    let mut all = Vec::new();
    while let Some(given) = tasks.join_next().await {
        all.extend(given??);
    }
    Ok(all)
}

/// A message to a token that nobody else has.
fn message(number: u64) -> Value {
    json!({
        "target": {"token": {"platform": "apple", "token": format!("{:064x}", number + (1 << 40))}},
        "notification": {"title": "Your code", "body": format!("{:06}", number % 1_000_000)},
        "priority": "high",
        "ttl_seconds": 300,
    })
}
