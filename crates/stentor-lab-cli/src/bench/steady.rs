//! An app that only sends: a few callers of single messages, each with a pause between two of them.

use reqwest::{Method, StatusCode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::client::ApiClient;
use tokio::task::JoinSet;

/// Callers of the app.
const CALLERS: u64 = 4;

/// Writes the next message.
pub(super) type NextMessage = Arc<dyn Fn() -> String + Send + Sync>;

/// Sends single messages for the time `span`, on a thread of its own, so that the load of this program does not affect the result. Returns
/// the times in milliseconds, and the number of requests with another answer than 202 or with none.
pub(super) async fn send(
    client: ApiClient,
    pause: Duration,
    span: Duration,
    message: NextMessage,
) -> anyhow::Result<(Samples, u64)> {
    let until = Instant::now() + span;
    let sent = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(send_until(client, pause, until, message))
    });
    sent.await?
}

async fn send_until(
    client: ApiClient,
    pause: Duration,
    until: Instant,
    message: NextMessage,
) -> anyhow::Result<(Samples, u64)> {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(call(client.clone(), pause, until, message.clone()));
    }
    let (mut times, mut refused) = (Samples::default(), 0);
    while let Some(done) = callers.join_next().await {
        let (took, not_taken) = done??;
        took.into_iter().for_each(|took| times.push(took));
        refused += not_taken;
    }
    Ok((times, refused))
}

/// Sends one message after the other; after a failed call the connection is opened again.
async fn call(
    client: ApiClient,
    pause: Duration,
    until: Instant,
    message: NextMessage,
) -> anyhow::Result<(Vec<f64>, u64)> {
    let (mut times, mut refused) = (Vec::new(), 0);
    let mut caller = crate::caller::open(&client).await?;
    while Instant::now() < until {
        let body = message();
        let started_at = Instant::now();
        match caller.call(Method::POST, "/v1/messages", body.into()).await {
            Ok((StatusCode::ACCEPTED, _)) => {}
            Ok(_) => refused += 1,
            Err(_) => {
                refused += 1;
                caller = crate::caller::open(&client).await?;
            }
        }
        times.push(started_at.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(pause).await;
    }
    Ok((times, refused))
}
