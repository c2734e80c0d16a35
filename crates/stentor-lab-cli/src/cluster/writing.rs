//! Waits until every server serves again after a fault.

use reqwest::StatusCode;
use serde_json::json;
use std::time::{Duration, Instant};
use stentor_stage::client::ApiClient;
use stentor_stage::failure::CommandFailure;

/// Time limit until every server serves again.
const LIMIT: Duration = Duration::from_secs(120);
/// Response timeout; a stopped or isolated server gives no response.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until each of the servers `writing` has answered 202 to a message, and each of the servers `all` is ready. Returns the time that
/// this took.
pub(crate) async fn until_served(writing: &[ApiClient], all: &[ApiClient]) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    until_written(writing).await?;
    for client in all {
        loop {
            let said = match tokio::time::timeout(ANSWER_LIMIT, client.probe("/readyz")).await {
                Ok(Ok((status, _))) if status.is_success() => break,
                Ok(Ok((status, body))) => format!("{status}: {body}"),
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => format!("no answer within {ANSWER_LIMIT:?}"),
            };
            give_up_in_time(begun, client, &said)?;
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(begun.elapsed())
}

/// Waits until each of these servers has answered 202 to a message. Returns the time that this took.
pub(crate) async fn until_written(clients: &[ApiClient]) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    // No device has this topic.
    let message = json!({"target": {"condition": "'nobody' in topics"}, "data": {"kind": "inquiry"}});
    for client in clients {
        loop {
            let result = tokio::time::timeout(ANSWER_LIMIT, client.offer("/v1/messages", &message)).await;
            let said = match result {
                Ok(Ok((StatusCode::ACCEPTED, _))) => break,
                Ok(Ok((status, body))) => format!("{status}: {body}"),
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => format!("no answer within {ANSWER_LIMIT:?}"),
            };
            give_up_in_time(begun, client, &said)?;
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(begun.elapsed())
}

fn give_up_in_time(begun: Instant, client: &ApiClient, said: &str) -> anyhow::Result<()> {
    if begun.elapsed() <= LIMIT {
        return Ok(());
    }
    let server = client.server();
    let sentence = format!("{server} does not serve {LIMIT:?} after the fault is over: {said}");
    Err(CommandFailure::not_done(sentence).into())
}
