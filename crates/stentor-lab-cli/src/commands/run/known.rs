//! The known device of each platform: it listens at its emulator, and must receive the push.

use super::site::{Site, services};
use anyhow::Context;
use serde_json::json;
use std::time::Duration;
use stentor_lab::plan::PlatformMix;
use stentor_stage::devices::PopulationMember;
use tokio::task::JoinHandle;

/// Time after the campaign's end in which a device may still receive its message.
const PATIENCE: Duration = Duration::from_secs(10);

/// Listening devices.
pub(super) struct KnownDevices {
    listening: Vec<JoinHandle<anyhow::Result<()>>>,
}

impl KnownDevices {
    /// Registers the first device of each platform at its emulator, and listens for a message with this mark.
    pub(super) async fn listen(
        site: &Site,
        app: usize,
        mix: PlatformMix,
        mark: &str,
    ) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        let mut listening = Vec::new();
        for service in services(mix) {
            let token = site.apps[app].fleet.token(PopulationMember { service: *service, number: 0 });
            let control =
                site.emulators.of(*service)?.control.as_deref().context("an emulator has no control port")?;
            let register = http.post(format!("{control}/device/register")).json(&json!({"token": token}));
            register.send().await?.error_for_status()?;
            let messages = http.get(format!("{control}/device/{token}/messages")).send().await?;
            let messages = messages.error_for_status().context("a test device cannot listen")?;
            listening.push(tokio::spawn(hear(messages, mark.to_owned())));
        }
        Ok(Self { listening })
    }

    /// Returns the number of devices that received the message, and the number of all.
    pub(super) async fn reached(self) -> [u32; 2] {
        let count = self.listening.len() as u32;
        let mut reached = 0;
        for listening in self.listening {
            let stop = listening.abort_handle();
            let heard = tokio::time::timeout(PATIENCE, listening).await;
            // The timeout ends only the wait: the task would go on listening through the next trial.
            stop.abort();
            reached += u32::from(matches!(heard, Ok(Ok(Ok(())))));
        }
        [reached, count]
    }
}

async fn hear(mut messages: reqwest::Response, mark: String) -> anyhow::Result<()> {
    let mut heard = Vec::new();
    loop {
        let part = messages.chunk().await?.context("the emulator ended the stream")?;
        heard.extend_from_slice(&part);
        if String::from_utf8_lossy(&heard).contains(&mark) {
            return Ok(());
        }
    }
}
