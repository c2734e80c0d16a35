//! What is sent to the devices: campaigns to all of them, of which some are held for a while, and messages to one.

use super::super::caller::{AnswerLog, ClusterCaller, ClusterRequest};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::time::Duration;
use stentor_stage::client::segment;
use stentor_stage::text::cell;

const MESSAGES_MAX: u64 = 5_000;
const PAUSE: Duration = Duration::from_millis(2_500);
/// How long a campaign is held.
const HELD_FOR: Duration = Duration::from_millis(1_500);
/// Some messages are for those who are there at once.
const SHORT_TTL_SECONDS: u64 = 2;
/// It was held, or let go on, too late.
const TOO_LATE: &[&str] = &["conflict"];

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayTarget {
    /// All devices.
    Everyone,
    /// The one with this number.
    One(usize),
}

/// A message that was answered with 202.
#[derive(Clone, Debug)]
pub(super) struct GatewayPromise {
    pub(super) message: String,
    pub(super) campaign: String,
    pub(super) target: GatewayTarget,
    /// Whether it may expire before its devices are there.
    pub(super) is_short: bool,
}

/// What was answered.
#[derive(Default)]
pub(super) struct GatewayLog {
    pub(super) promises: Vec<GatewayPromise>,
    /// Campaigns that were paused and let go on.
    pub(super) held: u64,
    pub(super) answers: AnswerLog,
}

/// Sends to the devices, one message after the other.
pub(super) struct GatewayMessages {
    caller: ClusterCaller,
    ids: Vec<String>,
    chance: StdRng,
    log: GatewayLog,
}

impl GatewayMessages {
    pub(super) fn new(caller: ClusterCaller, ids: Vec<String>, seed: u64) -> Self {
        Self { caller, ids, chance: StdRng::seed_from_u64(seed), log: GatewayLog::default() }
    }

    /// Sends until the faults are over.
    pub(super) async fn run(mut self) -> GatewayLog {
        for number in 0..MESSAGES_MAX {
            if self.caller.state.is_over() {
                break;
            }
            self.play(number).await;
            tokio::time::sleep(PAUSE).await;
        }
        self.log.answers = self.caller.log;
        self.log
    }

    /// Sends the next message: to all, to one, to all and held, to all for a short time, and so on.
    async fn play(&mut self, number: u64) {
        let (target, is_short) = match number % 4 {
            1 => (GatewayTarget::One(self.chance.random_range(0..self.ids.len())), false),
            3 => (GatewayTarget::Everyone, true),
            _ => (GatewayTarget::Everyone, false),
        };
        let to = match target {
            GatewayTarget::Everyone => json!("everyone"),
            GatewayTarget::One(device) => json!({"device": self.ids[device]}),
        };
        let mut message = json!({"target": to, "data": {"number": number.to_string()}});
        if is_short {
            message["ttl_seconds"] = json!(SHORT_TTL_SECONDS);
        }
        let request = ClusterRequest::message(format!("devices-{number}"), message);
        let Some(said) = self.caller.insist(&request).await else { return };
        let promise = promise_of(&said, target, is_short);
        if number % 4 == 2 {
            self.hold(&promise.campaign).await;
        }
        self.log.promises.push(promise);
    }

    /// Pauses a campaign and lets it go on; what was accepted meanwhile is to come afterwards.
    async fn hold(&mut self, campaign: &str) {
        let act = |action: &str| ClusterRequest::Act(format!("/v1/campaigns/{}/{action}", segment(campaign)));
        if let Some(Ok(_)) = self.caller.insist_or(&act("pause"), TOO_LATE).await {
            tokio::time::sleep(HELD_FOR).await;
            self.caller.insist_or(&act("resume"), TOO_LATE).await;
            self.log.held += 1;
        }
    }
}

/// Reads what the server says of a campaign or message that it has.
pub(super) fn promise_of(said: &Value, target: GatewayTarget, is_short: bool) -> GatewayPromise {
    GatewayPromise { message: cell(&said["id"]), campaign: cell(&said["campaign"]), target, is_short }
}
