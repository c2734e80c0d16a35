//! Messages to the devices: campaigns to all of them, some of them paused for a while, and messages to one device.

use super::super::caller::{AnswerLog, ClusterCaller, ClusterRequest};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::time::Duration;
use stentor_stage::client::segment;
use stentor_stage::text::cell;

const MESSAGES_MAX: u64 = 5_000;
const PAUSE: Duration = Duration::from_millis(2_500);
/// Duration of a pause.
const HELD_FOR: Duration = Duration::from_millis(1_500);
/// Time to live of messages for devices that are connected at once.
const SHORT_TTL_SECONDS: u64 = 2;
/// Error code of a campaign that ended before it could be paused or resumed.
const TOO_LATE: &[&str] = &["conflict"];

/// Target of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayTarget {
    /// All devices.
    Everyone,
    /// The device with this number.
    One(usize),
}

/// A message that was answered with 202.
#[derive(Clone, Debug)]
pub(super) struct GatewayPromise {
    pub(super) message: String,
    pub(super) campaign: String,
    pub(super) target: GatewayTarget,
    /// True if it may expire before its devices connect.
    pub(super) is_short: bool,
}

/// Log of the answers.
#[derive(Default)]
pub(super) struct GatewayLog {
    pub(super) promises: Vec<GatewayPromise>,
    /// Campaigns that were paused and resumed.
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

    /// Sends the next message, in turn: to all, to one, to all with a pause, to all with a short time to live.
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

    /// Pauses a campaign and resumes it; messages accepted during the pause must arrive afterwards.
    async fn hold(&mut self, campaign: &str) {
        let act = |action: &str| ClusterRequest::Act(format!("/v1/campaigns/{}/{action}", segment(campaign)));
        if let Some(Ok(_)) = self.caller.insist_or(&act("pause"), TOO_LATE).await {
            tokio::time::sleep(HELD_FOR).await;
            self.caller.insist_or(&act("resume"), TOO_LATE).await;
            self.log.held += 1;
        }
    }
}

/// Reads a campaign or message from the server's response.
pub(super) fn promise_of(said: &Value, target: GatewayTarget, is_short: bool) -> GatewayPromise {
    GatewayPromise { message: cell(&said["id"]), campaign: cell(&said["campaign"]), target, is_short }
}
