//! A caller that tries the servers of a cluster in turn until one answers.

use super::faults_state::{FaultsState, PATIENCE};
use super::writing::ANSWER_LIMIT;
use reqwest::Body;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_stage::client::ApiClient;
use stentor_stage::failure::judge;

pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Error codes after which the same request is repeated.
const LATER: [&str; 4] = ["rate_limited", "queue_full", "unavailable", "request_timeout"];

/// A request that is repeated until it is answered; repeating any of them is harmless.
pub(crate) enum ClusterRequest {
    /// Lines of an import.
    Import(String),
    /// An object for a path, with its idempotency key.
    Post { path: &'static str, key: String, body: Value },
    /// A POST to a path, without a body.
    Act(String),
    /// A GET of a path.
    Show(String),
}

impl ClusterRequest {
    /// A message with its idempotency key.
    pub(crate) const fn message(key: String, body: Value) -> Self {
        Self::Post { path: "/v1/messages", key, body }
    }

    async fn ask(&self, client: &ApiClient) -> anyhow::Result<Value> {
        match self {
            Self::Import(lines) => {
                let query = [("format", "ndjson".to_owned())];
                let body = Body::from(lines.clone());
                client.stream("/v1/devices/import", &query, "application/x-ndjson", body).await
            }
            Self::Post { path, key, body } => client.post_once(path, Some(key), body).await,
            Self::Act(path) => client.act(path).await,
            Self::Show(path) => client.get(path).await,
        }
    }
}

/// A log of the answers.
#[derive(Debug, Default)]
pub(crate) struct AnswerLog {
    /// Temporary refusals by their code; calls without an answer are counted here too.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Unexpected answers.
    pub(crate) strange: Vec<String>,
    /// The longest time from the first try to the answer.
    pub(crate) slowest: Duration,
}

impl AnswerLog {
    /// Returns a description of the unexpected answers, if any.
    pub(crate) fn broken(&self) -> Option<String> {
        let first = self.strange.first()?;
        Some(format!("{} answers must not be, the first is: {first}", self.strange.len()))
    }
}

/// Calls one server after the other.
pub(crate) struct ClusterCaller {
    clients: Vec<ApiClient>,
    pub(crate) state: Arc<FaultsState>,
    asked: usize,
    pub(crate) log: AnswerLog,
}

impl ClusterCaller {
    /// Prepares calls of servers.
    pub(crate) fn new(clients: Vec<ApiClient>, state: Arc<FaultsState>) -> Self {
        Self { clients, state, asked: 0, log: AnswerLog::default() }
    }

    /// Reads a path from the first server that answers; `None` if none does.
    pub(crate) async fn show(&self, path: &str) -> Option<Value> {
        show(&self.clients, path).await
    }

    /// Returns the next server in turn.
    pub(crate) fn next_client(&mut self) -> ApiClient {
        self.asked += 1;
        self.clients[self.asked % self.clients.len()].clone()
    }

    /// Repeats a request until it is answered; `None` if the answer is unexpected, which is logged.
    pub(crate) async fn insist(&mut self, request: &ClusterRequest) -> Option<Value> {
        match self.insist_or(request, &[]).await {
            Some(Ok(said)) => Some(said),
            _ => None,
        }
    }

    /// Repeats a request until it is answered, with one of the allowed `refusals` as an answer too; `None` if the answer is unexpected,
    /// which is logged.
    pub(crate) async fn insist_or(
        &mut self,
        request: &ClusterRequest,
        refusals: &[&'static str],
    ) -> Option<Result<Value, &'static str>> {
        let begun = Instant::now();
        loop {
            let client = self.next_client();
            let word = match tokio::time::timeout(ANSWER_LIMIT, request.ask(&client)).await {
                Ok(Ok(said)) => {
                    self.log.slowest = self.log.slowest.max(begun.elapsed());
                    return Some(Ok(said));
                }
                Ok(Err(error)) => match judge(&error) {
                    (_, Some(code)) if refusals.contains(&code) => {
                        return refusals
                            .iter()
                            .find(|refusal| **refusal == code)
                            .map(|refusal| Err(*refusal));
                    }
                    (_, Some(code)) if LATER.contains(&code) => code.to_owned(),
                    (_, None) => "unreachable".to_owned(),
                    (_, Some(_)) => {
                        self.log.strange.push(format!("{error:#}"));
                        return None;
                    }
                },
                Err(_) => "no_answer".to_owned(),
            };
            *self.log.refused.entry(word.clone()).or_default() += 1;
            if self.state.is_over() && begun.elapsed() > PATIENCE {
                self.log.strange.push(format!("nothing was taken within {PATIENCE:?}: {word}"));
                return None;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

/// Reads a path from the first server that answers; `None` if none does.
pub(crate) async fn show(clients: &[ApiClient], path: &str) -> Option<Value> {
    for client in clients {
        if let Ok(Ok(said)) = tokio::time::timeout(ANSWER_LIMIT, client.get(path)).await {
            return Some(said);
        }
    }
    None
}
