//! The life of a device: it registers, listens, handles what comes, confirms it, and sends what waits.

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

/// Wait before the first new connection; each further one is twice as long, up to the last.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
const BACKOFF_LAST: Duration = Duration::from_secs(300);
/// A connection that lasted this long was a good one: the next wait is short again.
const GOOD_CONNECTION: Duration = Duration::from_secs(60);
/// How often the outbox is looked at.
const OUTBOX_INTERVAL: Duration = Duration::from_secs(2);
/// A token is renewed when it is older than this.
const TOKEN_LIFE: Duration = Duration::from_secs(30 * 24 * 3_600);
/// A connection is made anew after this: only between connections a token is renewed.
const CONNECTION_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// The pause between two attempts with the former identity.
const FORMER_INTERVAL: Duration = Duration::from_secs(3_600);
/// Longest event that is read.
const EVENT_MAX_BYTES: usize = 1024 * 1024;

/// What a device is run with.
pub(crate) struct DeviceRun {
    /// Where it remembers.
    pub(crate) folder: PathBuf,
    /// Where it connects to.
    pub(crate) server: String,
    /// The certificate of the authority that vouches for the server, where the system does not know it.
    pub(crate) authority: Option<Vec<u8>>,
    /// What lets it register.
    pub(crate) key: Option<String>,
    /// What it tells of itself when it registers.
    pub(crate) details: Value,
    /// Whether the server is to seal its messages; once it did so, it goes on.
    pub(crate) encrypt: bool,
    /// What is done with messages.
    pub(crate) handling: Handling,
    /// It ends after so many messages; never when `None`.
    pub(crate) count: Option<u64>,
    /// When the server was last asked whether it knows again who the device was.
    pub(crate) former_asked: Option<Instant>,
}

/// Why a connection ended.
enum ConnectionEnd {
    /// Enough messages came.
    Enough,
    /// It has lasted long.
    Aged,
    /// The device's token opens nothing any more.
    Unknown,
    /// The line broke, or the server stopped.
    Broken(anyhow::Error),
}

impl DeviceRun {
    /// Runs until enough messages have come, or for ever.
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
            // Up to half of it more, so that devices do not come back all at once.
            sleep(backoff.mul_f64(1.0 + spread() / 2.0)).await;
            backoff = (backoff * 2).min(BACKOFF_LAST);
        }
    }

    /// Returns what the device remembers, registering it first if need be; nothing while the server cannot be reached.
    async fn remembered(&mut self, client: &DeviceClient) -> anyhow::Result<Option<DeviceMemory>> {
        let present = DeviceMemory::read(&self.folder)?;
        if (present.is_none() || self.former_asked.is_none_or(|asked| asked.elapsed() > FORMER_INTERVAL))
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
            // The server has known this device, and may know it again.
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

    /// Becomes again who the device was, where the server knows that one again: messages may wait for it.
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
            // What was made in its place is nobody any more; where that fails it only stays in the app's list.
            if let Some(newer) = newer {
                _ = client.withdraw(newer).await;
            }
            break;
        }
        Ok(())
    }

    /// Renews a token that is old. The old one is good until the new one, which is kept by then, is first used.
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

    /// Sees to it that the server seals for this device before any message comes, where it is to.
    async fn sealed(&self, client: &DeviceClient, own: &mut DeviceMemory) -> Result<(), ConnectionEnd> {
        if self.encrypt && own.keys.is_none() {
            // Kept before they are told: what is sealed from then on can be opened.
            own.keys = Some(KeysRecord::generate().map_err(ConnectionEnd::Broken)?);
            own.keep(&self.folder).map_err(ConnectionEnd::Broken)?;
        }
        let Some(keys) = own.keys.as_ref().filter(|keys| !keys.is_confirmed) else { return Ok(()) };
        let keys = keys.pair().and_then(|pair| pair.public().context("no point of the curve"));
        let told = client.put_keys(own, &keys.map_err(ConnectionEnd::Broken)?).await;
        match told.map_err(ConnectionEnd::Broken)? {
            Answer::Done(()) => {}
            Answer::Unknown => return Err(ConnectionEnd::Unknown),
            Answer::Refused(why) => return Err(ConnectionEnd::Broken(anyhow::anyhow!(why))),
        }
        if let Some(keys) = &mut own.keys {
            keys.is_confirmed = true;
        }
        own.keep(&self.folder).map_err(ConnectionEnd::Broken)
    }

    /// Notes that the server does not know the device. That may pass, as after a copy of its data was put back: nothing is erased.
    fn note_refusal(&self) -> anyhow::Result<()> {
        let (Some(mut own), now) = (DeviceMemory::read(&self.folder)?, seconds_now()) else { return Ok(()) };
        if own.refused_since == 0 {
            own.refused_since = now;
        }
        if self.key.is_some() {
            return own.keep_former(&self.folder, now);
        }
        if own.is_over(now) {
            let why = "this device was removed from its app: register it anew with --key";
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

    /// Handles a message unless it came before, and confirms it; returns whether enough have come.
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
                // It will never be opened: it is confirmed, so that it does not come for ever.
                Err(error) => output::note(&format!("{id}: {error:#}; it is given up")),
            }
            // Remembered before it is confirmed: what is confirmed never comes again.
            own.note_seen(id);
            own.keep(&self.folder)?;
            self.count = self.count.map(|left| left.saturating_sub(1));
        }
        client.confirm(own, &[id.to_owned()]).await?;
        Ok(self.count == Some(0))
    }

    /// Sends what waits in the outbox.
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

/// Returns what a device tells of itself when it registers.
pub(crate) fn device_details(
    user: Option<&str>,
    tags: &[String],
    topics: &[String],
    proof: Option<&str>,
) -> Value {
    let mut told = json!({"platform": "linux", "tags": tags, "topics": topics});
    for (name, text) in [("user", user), ("proof", proof)] {
        if let Some(text) = text {
            told[name] = json!(text);
        }
    }
    told
}

/// Reads Server-Sent Events (WHATWG HTML, 9.2), as far as the gateway writes them: one line of data each.
struct EventReader {
    response: Response,
    text: Vec<u8>,
}

impl EventReader {
    /// Returns the next message; `None` at the end. Nothing is lost when it is cut off.
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

/// Reads one event; nothing for a comment, and for what is no message.
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

/// Returns the nanoseconds since 1970: later names are greater.
pub(crate) fn nanos_now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Returns a number from 0 to 1 that differs from device to device.
fn spread() -> f64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    f64::from(nanos ^ std::process::id()) % 1_000.0 / 1_000.0
}
