//! The persistent session of a device. There is at most one, that of the last client that requested it.

use stentor_core::ports::store::{Channel, ChannelChange, StoreError};
use stentor_core::time::Timestamp;
use tokio::time::Duration;

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::session_outcomes::OutcomeListener;

/// The session expiry for a session without end (3.1.2.11.2 of MQTT 5).
pub(super) const NEVER_SECONDS: u32 = u32::MAX;
/// Follows the client id of an expiring session; not allowed in client ids.
pub(super) const SEPARATOR: char = '\u{1f}';

/// A persistent session, as the name of a channel in the store: the client id alone if it does not expire, otherwise with its lifetime and
/// phase.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionRecord<'a> {
    client_id: &'a str,
    expiry_seconds: u32,
    phase: SessionPhase,
}

/// The phase of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionPhase {
    /// It has a connection, identified by a random number. It stays so if the server dies, because the time of that is unknown.
    Open(u32),
    /// Its connection ended at this time.
    Ended(Timestamp),
}

impl<'a> SessionRecord<'a> {
    fn read(name: &'a str) -> Self {
        let endless = Self { client_id: name, expiry_seconds: NEVER_SECONDS, phase: SessionPhase::Open(0) };
        Self::read_expiring(name).unwrap_or(endless)
    }

    fn read_expiring(name: &'a str) -> Option<Self> {
        let mut parts = name.split(SEPARATOR);
        let (client_id, seconds, phase, value) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let phase = match phase {
            "open" => SessionPhase::Open(value.parse().ok()?),
            "ended" => SessionPhase::Ended(Timestamp::from_millis(value.parse().ok()?)),
            _ => return None,
        };
        Some(Self { client_id, expiry_seconds: seconds.parse().ok()?, phase })
    }

    fn name(&self) -> String {
        let Self { client_id, expiry_seconds, phase } = self;
        if *expiry_seconds == NEVER_SECONDS {
            return (*client_id).to_owned();
        }
        let (phase, value) = match phase {
            SessionPhase::Open(number) => ("open", i64::from(*number)),
            SessionPhase::Ended(at) => ("ended", at.as_millis()),
        };
        format!("{client_id}{SEPARATOR}{expiry_seconds}{SEPARATOR}{phase}{SEPARATOR}{value}")
    }

    fn is_over(&self, now: Timestamp) -> bool {
        match self.phase {
            SessionPhase::Ended(at) if self.expiry_seconds != NEVER_SECONDS => {
                now >= at.plus(Duration::from_secs(self.expiry_seconds.into()))
            }
            SessionPhase::Open(_) | SessionPhase::Ended(_) => false,
        }
    }
}

/// A session at the beginning of a connection.
pub(super) struct MqttSessionStart {
    /// True if the client returns to it.
    pub(super) is_resumed: bool,
    /// The name of its record, if it outlives the connection.
    pub(super) record: Option<Box<str>>,
    /// The channel that reports the outcome of the session after this connection, if a delayed will needs it.
    pub(super) outcome: Option<OutcomeListener>,
}

/// The session requested by a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedSession<'a> {
    pub(super) client_id: &'a str,
    /// True for a new session.
    pub(super) is_clean: bool,
    /// Lifetime after the connection.
    pub(super) expiry_seconds: u32,
    /// True if the connection must be notified of the outcome of its session.
    pub(super) has_delayed_will: bool,
}

/// Returns the name of a device's records among the store's channels.
fn agent_of(identity: DeviceIdentity) -> String {
    format!("mqtt/{}", identity.device)
}

/// Records the session requested by a client, and notifies the previous connection of the outcome of its session.
pub(super) async fn begin(
    gateway: &Gateway,
    identity: DeviceIdentity,
    wanted: WantedSession<'_>,
) -> Result<MqttSessionStart, StoreError> {
    let WantedSession { client_id, is_clean, expiry_seconds, has_delayed_will } = wanted;
    let (store, agent, now) = (gateway.store(), agent_of(identity), gateway.clock().now());
    // Held from the read to the last change: each of two concurrent connections must see the other's writes.
    let _turn = gateway.state().session_records.turn(identity.device).await;
    let known = gateway.channels(agent.clone()).await?;
    let is_here = |record: SessionRecord<'_>| record.client_id == client_id && !record.is_over(now);
    let was_here = known.iter().any(|channel| is_here(SessionRecord::read(&channel.name)));
    let phase = SessionPhase::Open(rand::random());
    let own = (expiry_seconds > 0).then(|| SessionRecord { client_id, expiry_seconds, phase }.name());
    if let Some(name) = own.clone().filter(|own| known.iter().all(|channel| channel.name != *own)) {
        let DeviceIdentity { app, device } = identity;
        // The new record first: a server that dies in between leaves one too many, not none.
        store.change_channel(&agent, ChannelChange::Put(Channel { name, app, device })).await?;
    }
    for other in known.into_iter().filter(|channel| Some(&channel.name) != own.as_ref()) {
        store.change_channel(&agent, ChannelChange::Remove(other.name)).await?;
    }
    let is_resumed = was_here && !is_clean;
    let outcomes = &gateway.state().session_outcomes;
    let outcome = outcomes.begin(identity.device, is_resumed, has_delayed_will && expiry_seconds > 0);
    Ok(MqttSessionStart { is_resumed, record: own.map(Into::into), outcome })
}

/// Records the end of a session's connection, from which its lifetime runs; the client may have changed it at the end. Changes nothing if
/// another connection has taken the session over. Returns the new name of the record.
pub(super) async fn end(
    gateway: &Gateway,
    identity: DeviceIdentity,
    record: &str,
    changed_seconds: Option<u32>,
) -> Result<String, StoreError> {
    let (store, agent, now) = (gateway.store(), agent_of(identity), gateway.clock().now());
    let SessionRecord { client_id, expiry_seconds, .. } = SessionRecord::read(record);
    let expiry_seconds = changed_seconds.unwrap_or(expiry_seconds);
    let phase = SessionPhase::Ended(now);
    let name = SessionRecord { client_id, expiry_seconds, phase }.name();
    if name == record {
        return Ok(name);
    }
    let _turn = gateway.state().session_records.turn(identity.device).await;
    if store.change_channel(&agent, ChannelChange::Remove(record.to_owned())).await? && expiry_seconds > 0 {
        let DeviceIdentity { app, device } = identity;
        store.change_channel(&agent, ChannelChange::Put(Channel { name: name.clone(), app, device })).await?;
    }
    Ok(name)
}

/// Returns true if a connection at any server has resumed a session since its own connection ended with this record.
pub(super) async fn is_gone_on_with(
    gateway: &Gateway,
    identity: DeviceIdentity,
    record: &str,
) -> Result<bool, StoreError> {
    let client_id = SessionRecord::read(record).client_id;
    let known = gateway.channels(agent_of(identity)).await?;
    let is_there = known.iter().any(|channel| channel.name == record);
    Ok(!is_there && known.iter().any(|channel| SessionRecord::read(&channel.name).client_id == client_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_bare_name_never_expires() {
        for phase in [SessionPhase::Open(7), SessionPhase::Ended(Timestamp::from_millis(5_000))] {
            let record = SessionRecord { client_id: "a/1", expiry_seconds: 60, phase };
            assert_eq!(SessionRecord::read(&record.name()), record);
        }
        for name in
            ["kiosk", "", "kiosk\u{1f}60", "kiosk\u{1f}x\u{1f}open\u{1f}1", "k\u{1f}1\u{1f}open\u{1f}"]
        {
            let record = SessionRecord::read(name);
            assert_eq!((record.client_id, record.expiry_seconds), (name, NEVER_SECONDS));
            assert!(!record.is_over(Timestamp::from_millis(i64::MAX)));
        }
    }

    #[test]
    fn a_session_is_over_when_its_time_has_passed_since_its_connection() {
        let record = |phase| SessionRecord { client_id: "a", expiry_seconds: 60, phase };
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let ended = record(SessionPhase::Ended(at(100)));
        assert_eq!((ended.is_over(at(159)), ended.is_over(at(160))), (false, true));
        assert!(!record(SessionPhase::Open(7)).is_over(at(1_000_000)), "it has its connection");
    }
}
