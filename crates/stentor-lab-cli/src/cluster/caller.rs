//! Asks the servers of a cluster, one after the other, until one answers.

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
/// Answers after which the same is to be asked again.
const LATER: [&str; 4] = ["rate_limited", "queue_full", "unavailable", "request_timeout"];

/// What is asked, over and over until it is answered: repeating any of it is harmless.
pub(crate) enum ClusterRequest {
    /// Lines of an import.
    Import(String),
    /// An object for a path, with the key of its request.
    Post { path: &'static str, key: String, body: Value },
    /// A path to which nothing is posted.
    Act(String),
    /// What is at a path.
    Show(String),
}

impl ClusterRequest {
    /// A message with the key of its request.
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

/// What the answers were.
#[derive(Debug, Default)]
pub(crate) struct AnswerLog {
    /// Answers that only put off, by their code; what was not answered at all is among them.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Answers that must not be.
    pub(crate) strange: Vec<String>,
    /// The longest time from the first asking to the answer.
    pub(crate) slowest: Duration,
}

impl AnswerLog {
    /// Returns what must not be.
    pub(crate) fn broken(&self) -> Option<String> {
        let first = self.strange.first()?;
        Some(format!("{} answers must not be, the first is: {first}", self.strange.len()))
    }
}

/// Asks one server after the other.
pub(crate) struct ClusterCaller {
    clients: Vec<ApiClient>,
    pub(crate) state: Arc<FaultsState>,
    asked: usize,
    pub(crate) log: AnswerLog,
}

impl ClusterCaller {
    /// Prepares to ask servers.
    pub(crate) fn new(clients: Vec<ApiClient>, state: Arc<FaultsState>) -> Self {
        Self { clients, state, asked: 0, log: AnswerLog::default() }
    }

    /// Reads what is at a path from whichever server answers; `None` where none does.
    pub(crate) async fn show(&self, path: &str) -> Option<Value> {
        show(&self.clients, path).await
    }

    /// Returns the server whose turn it is.
    pub(crate) fn next_client(&mut self) -> ApiClient {
        self.asked += 1;
        self.clients[self.asked % self.clients.len()].clone()
    }

    /// Asks until there is an answer; `None` where it is one that must not be, which is noted.
    pub(crate) async fn insist(&mut self, request: &ClusterRequest) -> Option<Value> {
        match self.insist_or(request, &[]).await {
            Some(Ok(said)) => Some(said),
            _ => None,
        }
    }

    /// Asks until there is an answer, one of these refusals among them; `None` where it is one that must not be, which is noted.
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

/// Reads what is at a path from whichever server answers; `None` where none does.
pub(crate) async fn show(clients: &[ApiClient], path: &str) -> Option<Value> {
    for client in clients {
        if let Ok(Ok(said)) = tokio::time::timeout(ANSWER_LIMIT, client.get(path)).await {
            return Some(said);
        }
    }
    None
}
