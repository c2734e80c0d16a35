//! Single messages to tokens, by many concurrent callers.

use crate::caller::{CallerError, HttpCaller};
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

/// Interval between attempts to connect to a server that was killed.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(20);

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
    /// Time of the request, in microseconds since 1970; with an even pace, the time at which it was to be made.
    pub(super) asked_us: u128,
    /// Time of the 202, in microseconds since 1970.
    pub(super) at_us: u128,
}

/// Messages, each to a token of its own, by concurrent callers.
#[derive(Clone, Copy)]
pub(super) struct MessageLoad {
    /// Number of the first token.
    pub(super) first: u64,
    /// End of the load.
    pub(super) end: LoadEnd,
    /// Number of concurrent callers.
    pub(super) callers: u64,
    /// Times of the calls.
    pub(super) pace: Pace,
    /// Form of the requests.
    pub(super) form: RequestForm,
    /// True if callers connect again to a server that was killed. A message whose call failed is not counted.
    pub(super) outlives_kills: bool,
}

/// The interface through which messages are sent.
#[derive(Clone, Copy)]
pub(super) enum RequestForm {
    /// The server's.
    Stentor,
    /// The server's, with updates of so many Live Activities in turn.
    LiveActivity {
        /// Number of activities.
        activities: u64,
    },
    /// That of gorush (README.md of github.com/appleboy/gorush, POST /api/push).
    Gorush,
}

/// The end of a load.
#[derive(Clone, Copy)]
pub(super) enum LoadEnd {
    /// After so many messages.
    Count(u64),
    /// After this time.
    After(Duration),
}

/// Times of the calls.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// Each caller calls again at once.
    AtOnce,
    /// Each caller pauses between two calls.
    Pause(Duration),
    /// One call of all callers follows the other at this interval. A late caller makes up for it, and its time counts from the time at which
    /// the call was due.
    Even(Duration),
}

/// Kind of the callers' requests.
#[derive(Clone, Copy)]
enum RequestKind {
    /// A route without an effect.
    Nothing,
    /// A message.
    Message,
}

/// Calls a route without an effect, with the same numbers of calls and callers, to measure the cost of the callers, HTTP and the machine.
pub(super) async fn ask_nothing(clients: &[ApiClient], count: u64, callers: u64) -> anyhow::Result<Duration> {
    let (end, pace, form) = (LoadEnd::Count(count), Pace::AtOnce, RequestForm::Stentor);
    let load = MessageLoad { first: 0, end, callers, pace, form, outlives_kills: false };
    Ok(side_by_side(clients, load, RequestKind::Nothing).await?.0)
}

/// Sends messages; the callers are dealt out to the clients.
pub(super) async fn send(clients: &[ApiClient], load: MessageLoad) -> anyhow::Result<SentMessages> {
    let (wall, seen) = side_by_side(clients, load, RequestKind::Message).await?;
    let (mut latency_ms, mut messages) = (Samples::default(), Vec::new());
    for Answered { number, took, at, reply } in seen {
        latency_ms.push(took.as_secs_f64() * 1e3);
        let at_us = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        messages.push(AcceptedMessage {
            token: token(load.first + number),
            campaign: cell(&serde_json::from_slice::<Value>(&reply)?["campaign"]),
            asked_us: at_us.saturating_sub(took.as_micros()),
            at_us,
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

/// Makes the calls, and gathers the answers; the first failure ends it.
async fn side_by_side(
    clients: &[ApiClient],
    load: MessageLoad,
    kind: RequestKind,
) -> anyhow::Result<(Duration, Vec<Answered>)> {
    let clients = clients.to_vec();
    // One thread for all callers: callers that wake each other's threads cost more than their calls.
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(on_one_thread(&clients, load, kind))
    };
    tokio::task::spawn_blocking(work).await?
}

async fn on_one_thread(
    clients: &[ApiClient],
    load: MessageLoad,
    kind: RequestKind,
) -> anyhow::Result<(Duration, Vec<Answered>)> {
    let mut open = Vec::new();
    for client in clients.iter().cycle().take(load.callers as usize) {
        open.push((client.clone(), crate::caller::open(client).await?));
    }
    let began = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for (client, caller) in open {
        tasks.spawn(call(caller, CallerTask { client, next: next.clone(), load, kind, began }));
    }
    let mut all = Vec::new();
    while let Some(given) = tasks.join_next().await {
        all.extend(given??);
    }
    Ok((began.elapsed(), all))
}

/// The work of one caller.
struct CallerTask {
    client: ApiClient,
    /// Number of the next call.
    next: Arc<AtomicU64>,
    load: MessageLoad,
    kind: RequestKind,
    began: Instant,
}

impl CallerTask {
    /// Takes the next call; `None` at the end of the load.
    fn take(&self) -> Option<u64> {
        // Relaxed suffices: each number need only be taken once.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let goes_on = match self.load.end {
            LoadEnd::Count(count) => number < count,
            LoadEnd::After(span) => self.began.elapsed() < span,
        };
        goes_on.then_some(number)
    }

    /// Connects again, once the server is back or the load is over; `None` then.
    async fn reconnected(&self) -> Option<HttpCaller> {
        loop {
            if let Ok(caller) = crate::caller::open(&self.client).await {
                return Some(caller);
            }
            self.take()?;
            tokio::time::sleep(RECONNECT_INTERVAL).await;
        }
    }

    /// Makes a call.
    async fn call(
        &self,
        caller: &mut HttpCaller,
        number: u64,
    ) -> Result<(StatusCode, bytes::Bytes), CallerError> {
        match self.kind {
            RequestKind::Nothing => caller.call(Method::GET, "/healthz", bytes::Bytes::new()).await,
            RequestKind::Message => {
                let (path, body) = self.load.form.message(self.load.first + number);
                caller.call(Method::POST, path, body).await
            }
        }
    }

    /// Waits until a call is due; returns the time from which it counts.
    async fn wait(&self, number: u64) -> Instant {
        let Pace::Even(interval) = self.load.pace else { return Instant::now() };
        let due = self.began + interval.mul_f64(number as f64);
        tokio::time::sleep_until(due.into()).await;
        due
    }
}

/// Makes calls until all numbers are taken.
async fn call(mut caller: HttpCaller, task: CallerTask) -> anyhow::Result<Vec<Answered>> {
    let mut seen = Vec::new();
    while let Some(number) = task.take() {
        let started_at = task.wait(number).await;
        let (status, reply) = match task.call(&mut caller, number).await {
            Ok((status, _)) if task.load.outlives_kills && status != StatusCode::ACCEPTED => continue,
            Ok(answer) => answer,
            Err(_) if task.load.outlives_kills => match task.reconnected().await {
                Some(next) => {
                    caller = next;
                    continue;
                }
                None => return Ok(seen),
            },
            Err(error) => return Err(error.into()),
        };
        seen.push(Answered { number, took: started_at.elapsed(), at: SystemTime::now(), reply });
        if !matches!(status, StatusCode::OK | StatusCode::ACCEPTED) {
            return Err(CommandFailure::not_done(format!("the server answered {status}")).into());
        }
        if let Pace::Pause(pause) = task.load.pace {
            tokio::time::sleep(pause).await;
        }
    }
    Ok(seen)
}

fn token(number: u64) -> String {
    format!("{NOTED_TOKENS}{:016x}", number + (1 << 40))
}

impl RequestForm {
    /// Returns path and body of a message to a unique token.
    fn message(self, number: u64) -> (&'static str, bytes::Bytes) {
        let (token, code) = (token(number), number % 1_000_000);
        match self {
            Self::Stentor => {
                let text = format!(
                    r#"{{"target":{{"token":{{"platform":"apple","token":"{token}"}}}},"notification":{{"title":"Your code","body":"{code:06}"}},"priority":"high","ttl_seconds":300}}"#
                );
                ("/v1/messages", text.into())
            }
            Self::LiveActivity { activities } => {
                let activity = number % activities;
                let text = format!(
                    r#"{{"target":{{"token":{{"platform":"apple","provider":"live_activity","token":"{token}"}}}},"live_activity":{{"event":"update","activity":"order-{activity}","content_state":{{"code":"{code:06}"}}}},"priority":"high","ttl_seconds":300}}"#
                );
                ("/v1/messages", text.into())
            }
            Self::Gorush => {
                let text = format!(
                    r#"{{"notifications":[{{"tokens":["{token}"],"platform":1,"topic":"com.example.app","push_type":"alert","title":"Your code","message":"{code:06}","priority":"high"}}]}}"#
                );
                ("/api/push", text.into())
            }
        }
    }
}
