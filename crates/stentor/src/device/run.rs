//! The main loop of a device: it registers, listens, handles and confirms messages, and sends the waiting ones.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use reqwest::Response;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::memory::{DeviceMemory, Joined, KeysRecord};
use super::message::Handling;
use super::opening;
use super::outbox;
use super::service::{Answer, DeviceClient};
use crate::failure::CommandFailure;
use crate::output;

/// Delay before the first reconnection; it doubles with each further one, up to the last.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
const BACKOFF_LAST: Duration = Duration::from_secs(300);
/// Duration after which a connection counts as good: the next delay is short again.
const GOOD_CONNECTION: Duration = Duration::from_secs(60);
/// Interval of polling the outbox.
const OUTBOX_INTERVAL: Duration = Duration::from_secs(2);
/// Age at which a token is renewed.
const TOKEN_LIFE: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Age at which a connection is replaced, because a token is renewed only between connections.
const CONNECTION_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// Interval between two attempts with a former identity.
const FORMER_INTERVAL: Duration = Duration::from_secs(3_600);
/// Largest event that is read.
const EVENT_MAX_BYTES: usize = 1024 * 1024;

/// The settings of a running device.
pub(crate) struct DeviceRun {
    /// The folder of its state.
    pub(crate) folder: PathBuf,
    /// The URL of the server.
    pub(crate) server: String,
    /// The certificate of the server's authority, if the system does not know it.
    pub(crate) authority: Option<Vec<u8>>,
    /// The key with which it registers.
    pub(crate) key: Option<String>,
    /// The details of its registration.
    pub(crate) details: Value,
    /// True if the server is to encrypt its messages; once enabled, encryption stays enabled.
    pub(crate) encrypt: bool,
    /// The handling of messages.
    pub(crate) handling: Handling,
    /// Number of messages after which it ends; never if `None`.
    pub(crate) count: Option<u64>,
    /// Time of the last check whether the server knows a former identity again.
    pub(crate) former_asked: Option<Instant>,
}

/// The reason for the end of a connection.
enum ConnectionEnd {
    /// Enough messages were received.
    Enough,
    /// It reached its maximal age.
    Aged,
    /// The server does not know the device's token any more.
    Unknown,
    /// The connection broke, or the server stopped.
    Broken(anyhow::Error),
}

impl DeviceRun {
    /// Runs until enough messages were received, or forever.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let client = DeviceClient::new(&self.server, self.authority.as_deref())?;
        let mut backoff = BACKOFF_FIRST;
        loop {
            let began = Instant::now();
            let end = match self.remembered(&client).await? {
                Some(mut own) => match self.sealed(&client, &mut own).await {
                    Ok(()) => self.connected(&client, &mut own).await,
                    Err(end) => end,
                },
                None => ConnectionEnd::Broken(anyhow::anyhow!("the server cannot be reached")),
            };
            if began.elapsed() > GOOD_CONNECTION {
                backoff = BACKOFF_FIRST;
            }
            match end {
                ConnectionEnd::Enough => return Ok(()),
                ConnectionEnd::Aged => continue,
                ConnectionEnd::Unknown => self.note_refusal()?,
                ConnectionEnd::Broken(error) => {
                    output::note(&format!("{error:#}; trying again in {} s", backoff.as_secs()))
                }
            }
            // Up to half of it more, so that devices do not reconnect all at once.
            sleep(backoff.mul_f64(1.0 + spread() / 2.0)).await;
            backoff = (backoff * 2).min(BACKOFF_LAST);
        }
    }

    /// Returns the device's state, and registers the device first if needed; `None` while the server is unreachable.
    async fn remembered(&mut self, client: &DeviceClient) -> anyhow::Result<Option<DeviceMemory>> {
        let present = DeviceMemory::read(&self.folder)?;
        if (present.is_none()
            || self.former_asked.is_none_or(|asked_at| asked_at.elapsed() > FORMER_INTERVAL))
            && let Err(error) = self.return_to_former(client, present.as_ref()).await
        {
            output::note(&format!("{error:#}"));
            return Ok(None);
        }
        if let Some(own) = DeviceMemory::read(&self.folder)? {
            return self.fresh(client, own).await.map(Some);
        }
        let was_known = !DeviceMemory::former(&self.folder, seconds_now())?.is_empty();
        let missing = "this machine is not registered yet: give a key with the scope `join` with --key";
        let key = match &self.key {
            Some(key) => key,
            None if was_known => return Ok(None),
            None => return Err(CommandFailure::usage(missing).into()),
        };
        let joined = match client.join(key, &self.details).await {
            Ok(Answer::Done(joined)) => joined,
            // The server has known this device before, and may know it again.
            Ok(_) if was_known => return Ok(None),
            Ok(Answer::Unknown) => return Err(CommandFailure::usage("the key is wrong").into()),
            Ok(Answer::Refused(why)) => return Err(CommandFailure::not_done(why).into()),
            Err(_) => return Ok(None),
        };
        let own = DeviceMemory::new(&self.server, &joined, seconds_now());
        own.keep(&self.folder)?;
        output::note(&format!("registered as {}", own.device));
        Ok(Some(own))
    }

    /// Returns to a former identity if the server knows it again, because messages may wait for it.
    async fn return_to_former(
        &mut self,
        client: &DeviceClient,
        newer: Option<&DeviceMemory>,
    ) -> anyhow::Result<()> {
        self.former_asked = Some(Instant::now());
        for (path, mut former) in DeviceMemory::former(&self.folder, seconds_now())? {
            let Answer::Done(_) = client.show(&former).await? else { continue };
            former.refused_since = 0;
            former.keep(&self.folder)?;
            std::fs::remove_file(path)?;
            output::note(&format!("the server knows {} again", former.device));
            // The identity created in its place is obsolete; if its removal fails, it merely stays in the app's list.
            if let Some(newer) = newer {
                _ = client.withdraw(newer).await;
            }
            break;
        }
        Ok(())
    }

    /// Renews an old token. The old one is valid until the first use of the new one, which is stored by then.
    async fn fresh(&self, client: &DeviceClient, mut own: DeviceMemory) -> anyhow::Result<DeviceMemory> {
        if seconds_now().saturating_sub(own.token_since) > TOKEN_LIFE.as_secs()
            && let Ok(Answer::Done(joined)) = client.renew(&own).await
        {
            let joined: Joined = joined;
            own.renew(joined, seconds_now());
            own.keep(&self.folder)?;
        }
        Ok(own)
    }

    /// If encryption is enabled, ensures that the server encrypts for this device before any message arrives.
    async fn sealed(&self, client: &DeviceClient, own: &mut DeviceMemory) -> Result<(), ConnectionEnd> {
        if self.encrypt && own.keys.is_none() {
            // Stored before they are sent to the server, so that everything encrypted from then on can be decrypted.
            own.keys = Some(KeysRecord::generate().map_err(ConnectionEnd::Broken)?);
            own.keep(&self.folder).map_err(ConnectionEnd::Broken)?;
        }
        let Some(keys) = own.keys.as_ref().filter(|keys| !keys.is_confirmed) else { return Ok(()) };
        let keys = keys.pair().and_then(|pair| pair.public().context("no point of the curve"));
        let response = client.put_keys(own, &keys.map_err(ConnectionEnd::Broken)?).await;
        match response.map_err(ConnectionEnd::Broken)? {
            Answer::Done(()) => {}
            Answer::Unknown => return Err(ConnectionEnd::Unknown),
            Answer::Refused(why) => return Err(ConnectionEnd::Broken(anyhow::anyhow!(why))),
        }
        if let Some(keys) = &mut own.keys {
            keys.is_confirmed = true;
        }
        own.keep(&self.folder).map_err(ConnectionEnd::Broken)
    }

    /// Records that the server does not know the device. This may be temporary, for example after a restore of the server's data: nothing
    /// is erased.
    fn note_refusal(&self) -> anyhow::Result<()> {
        let (Some(mut own), now) = (DeviceMemory::read(&self.folder)?, seconds_now()) else { return Ok(()) };
        if own.refused_since == 0 {
            own.refused_since = now;
        }
        if self.key.is_some() {
            return own.keep_former(&self.folder, now);
        }
        if own.is_over(now) {
            let why = "this device was removed from its app: register it again with --key";
            return Err(CommandFailure::not_done(why).into());
        }
        output::note("the server does not know this device");
        own.keep(&self.folder)
    }

    async fn connected(&mut self, client: &DeviceClient, own: &mut DeviceMemory) -> ConnectionEnd {
        let mut events = match client.events(own).await {
            Ok(Answer::Done(response)) => EventReader { response, text: Vec::new() },
            Ok(Answer::Unknown) => return ConnectionEnd::Unknown,
            Ok(Answer::Refused(why)) => return ConnectionEnd::Broken(anyhow::anyhow!(why)),
            Err(error) => return ConnectionEnd::Broken(error),
        };
        own.refused_since = 0;
        let mut looks = tokio::time::interval(OUTBOX_INTERVAL);
        let aged = Instant::now() + CONNECTION_LIFE;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Ok(Some(message)) => match self.take(client, own, &message).await {
                        Ok(true) => return ConnectionEnd::Enough,
                        Ok(false) => {}
                        Err(error) => return ConnectionEnd::Broken(error),
                    },
                    Ok(None) => return ConnectionEnd::Broken(anyhow::anyhow!("the server ended the connection")),
                    Err(error) => return ConnectionEnd::Broken(error),
                },
                _ = looks.tick() => if let Err(error) = self.send_waiting(client, own).await {
                    return ConnectionEnd::Broken(error);
                },
                () = sleep_until(aged) => return ConnectionEnd::Aged,
            }
        }
    }

    /// Handles a message unless it was received before, and confirms it; returns true if enough messages were received.
    async fn take(
        &mut self,
        client: &DeviceClient,
        own: &mut DeviceMemory,
        message: &Value,
    ) -> anyhow::Result<bool> {
        let Some(id) = message["id"].as_str() else { return Ok(false) };
        if !own.has_seen(id) {
            match opening::opened(message, own.keys.as_ref()) {
                Ok(opened) if !self.handling.handle(&opened).await => return Ok(false),
                Ok(_) => {}
                // It can never be decrypted: it is confirmed, so that it is not sent forever.
                Err(error) => output::note(&format!("{id}: {error:#}; it is given up")),
            }
            // Recorded before it is confirmed: a confirmed message is never sent again.
            own.note_seen(id);
            own.keep(&self.folder)?;
            self.count = self.count.map(|left| left.saturating_sub(1));
        }
        client.confirm(own, &[id.to_owned()]).await?;
        Ok(self.count == Some(0))
    }

    /// Sends the messages in the outbox.
    async fn send_waiting(&self, client: &DeviceClient, own: &DeviceMemory) -> anyhow::Result<()> {
        for path in outbox::waiting(&self.folder)? {
            let Some(message) = outbox::read(&path)? else { continue };
            match client.send(own, &message).await? {
                Answer::Done(_) => outbox::remove(&path)?,
                Answer::Refused(why) => {
                    output::note(&format!("{}: {why}; it is set aside", message.message_id));
                    outbox::quarantine(&path)?;
                }
                Answer::Unknown => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Returns the details of a device's registration.
pub(crate) fn device_details(
    user: Option<&str>,
    tags: &[String],
    topics: &[String],
    proof: Option<&str>,
) -> Value {
    let mut details = json!({"platform": "linux", "tags": tags, "topics": topics});
    for (name, text) in [("user", user), ("proof", proof)] {
        if let Some(text) = text {
            details[name] = json!(text);
        }
    }
    details
}

/// Reads Server-Sent Events (WHATWG HTML, 9.2), in the form that the gateway writes: one line of data each.
struct EventReader {
    response: Response,
    text: Vec<u8>,
}

impl EventReader {
    /// Returns the next message; `None` at the end. It can be canceled without losing data.
    async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some(at) = self.text.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..at + 2).collect();
                if let Some(message) = message_of(&String::from_utf8_lossy(&event))? {
                    return Ok(Some(message));
                }
                continue;
            }
            anyhow::ensure!(
                self.text.len() <= EVENT_MAX_BYTES,
                "an event is longer than {EVENT_MAX_BYTES} bytes"
            );
            match self.response.chunk().await.context("the connection broke")? {
                Some(bytes) => self.text.extend_from_slice(&bytes),
                None => return Ok(None),
            }
        }
    }
}

/// Parses one event; `None` for a comment and for events other than messages.
fn message_of(event: &str) -> anyhow::Result<Option<Value>> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
    match (field("event:"), field("data:")) {
        (Some("message"), Some(data)) => {
            Ok(Some(serde_json::from_str(data).context("a message is no JSON")?))
        }
        (Some("deleted"), Some(count)) => {
            output::note(&format!("{count} messages were deleted: too many waited"));
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the nanoseconds since 1970: names derived from later calls are greater.
pub(crate) fn nanos_now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Returns a number from 0 to 1 that differs from device to device.
fn spread() -> f64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    f64::from(nanos ^ std::process::id()) % 1_000.0 / 1_000.0
}
