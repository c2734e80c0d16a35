//! Messages to single devices, at an even pace.

use super::GatewayOptions;
use super::messages_to_all::{DeviceTrial, now_us};
use super::publisher::message;
use super::report::SinglesRow;
use super::setting::GatewaySetting;
use crate::caller::HttpCaller;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::collections::HashMap;
use std::time::Duration;
use stentor_stage::client::ApiClient;
use stentor_stage::failure::CommandFailure;
use stentor_stage::reporter::Reporter;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Number of concurrent callers: enough to keep the pace although one answer may take some time.
const CALLERS: usize = 32;
/// Fixed, so that every run sends to the same devices.
const SEED: u64 = 1;

/// A message to one device.
#[derive(Clone)]
struct SingleMessage {
    number: u64,
    /// Index of the device.
    device: usize,
    token: String,
    /// Time of its request, from the beginning.
    after: Duration,
}

impl DeviceTrial {
    /// Sends to random devices, and measures when each message reached its device.
    pub(super) async fn singles(
        &mut self,
        setting: &GatewaySetting,
        options: &GatewayOptions,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<SinglesRow> {
        let messages = self.draw(setting, options);
        let (first, wanted) = (self.number + 1, messages.len() as u64);
        self.number += wanted;
        let before = self.devices.status().await?.distinct;
        let began = Instant::now();
        let sent_at_us = send(&setting.client, &messages).await?;
        let seconds = began.elapsed().as_secs_f64();
        self.devices.until(|status| status.distinct >= before + wanted).await?;
        let mut row =
            SinglesRow { messages: wanted, per_second: wanted as f64 / seconds, ..SinglesRow::default() };
        let arrivals = self.devices.arrivals(first, self.number).await?;
        let came: HashMap<u64, _> = arrivals.into_iter().map(|row| (row.number, row)).collect();
        for message in &messages {
            match came.get(&message.number) {
                Some(one) if one.devices == 1 && one.first_device == message.device => {
                    let sent_at_us = sent_at_us.get(&message.number).copied().unwrap_or(one.last_us);
                    row.latency_ms.push(one.last_us.saturating_sub(sent_at_us) as f64 / 1e3);
                    row.repeats += one.repeats;
                }
                // A message that reached another device counts as lost.
                _ => row.lost += 1,
            }
        }
        let p99 = row.latency_ms.quantile(0.99).unwrap_or_default();
        reporter.line(&format!("single messages: p99 {p99:.1} ms, {} lost", row.lost));
        Ok(row)
    }

    fn draw(&self, setting: &GatewaySetting, options: &GatewayOptions) -> Vec<SingleMessage> {
        let mut dice = StdRng::seed_from_u64(SEED);
        let count = u64::from(options.singles_per_second) * u64::from(options.singles_seconds);
        let pace = Duration::from_secs(1) / options.singles_per_second.max(1);
        let draw = |place: u64| {
            let device = dice.random_range(0..setting.logins.len());
            let (number, token) = (self.number + 1 + place, setting.logins[device].user.clone());
            SingleMessage { number, device, token, after: pace * u32::try_from(place).unwrap_or(u32::MAX) }
        };
        (0..count).map(draw).collect()
    }
}

/// Sends all messages, each at its time; returns the time of each request, in microseconds since 1970.
async fn send(client: &ApiClient, messages: &[SingleMessage]) -> anyhow::Result<HashMap<u64, u64>> {
    let (client, messages) = (client.clone(), messages.to_vec());
    // One thread for all callers: callers that wake each other's threads cost more than their calls.
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(side_by_side(&client, &messages))
    };
    tokio::task::spawn_blocking(work).await?
}

async fn side_by_side(client: &ApiClient, messages: &[SingleMessage]) -> anyhow::Result<HashMap<u64, u64>> {
    let mut tasks = JoinSet::new();
    let callers = CALLERS.min(messages.len());
    let mut open = Vec::new();
    for _ in 0..callers {
        open.push(crate::caller::open(client).await?);
    }
    let began = Instant::now();
    for (place, caller) in open.into_iter().enumerate() {
        let own = messages.iter().skip(place).step_by(callers).cloned().collect();
        tasks.spawn(call(caller, own, began));
    }
    let mut sent_at_us = HashMap::new();
    while let Some(some) = tasks.join_next().await {
        sent_at_us.extend(some??);
    }
    Ok(sent_at_us)
}

async fn call(
    mut caller: HttpCaller,
    messages: Vec<SingleMessage>,
    began: Instant,
) -> anyhow::Result<Vec<(u64, u64)>> {
    let mut sent_at_us = Vec::with_capacity(messages.len());
    for SingleMessage { number, token, after, .. } in messages {
        sleep_until(began + after).await;
        let target = json!({"token": {"platform": "linux", "provider": "gateway", "token": token}});
        let body = serde_json::to_vec(&message(target, number))?;
        sent_at_us.push((number, now_us()));
        let (status, _) = caller.call(Method::POST, "/v1/messages", body.into()).await?;
        if status != StatusCode::ACCEPTED {
            return Err(CommandFailure::not_done(format!("the server answered {status}")).into());
        }
    }
    Ok(sent_at_us)
}
