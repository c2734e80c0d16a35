//! Devices register themselves, as they would with a key that lies in their image.

use crate::client::ApiClient;
use crate::reporter::Reporter;
use crate::text::cell;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use std::time::{Duration, Instant};

/// Enough to hide the way of each.
const REQUESTS_AT_ONCE: usize = 32;

/// A device that has registered itself.
#[derive(Clone)]
pub struct RegisteredDevice {
    /// Its id.
    pub id: String,
    /// Its address.
    pub token: String,
    /// The secret of its login.
    pub secret: String,
}

/// Registers devices through a client with a key for that. Returns them and the time taken.
pub async fn register(
    client: &ApiClient,
    devices: u64,
    reporter: &dyn Reporter,
) -> anyhow::Result<(Vec<RegisteredDevice>, Duration)> {
    let (started, mut progress) = (Instant::now(), reporter.begin("registrations", devices));
    let body = json!({});
    let requests = (0..devices).map(|_| client.post("/gateway/v1/devices", &body));
    let mut replies = stream::iter(requests).buffer_unordered(REQUESTS_AT_ONCE);
    let mut registered = Vec::with_capacity(devices as usize);
    while let Some(reply) = replies.try_next().await? {
        let text = |name: &str| cell(&reply[name]);
        registered.push(RegisteredDevice {
            id: text("device"),
            token: text("token"),
            secret: text("secret"),
        });
        progress.update(registered.len() as u64);
    }
    progress.finish(registered.len() as u64);
    Ok((registered, started.elapsed()))
}
