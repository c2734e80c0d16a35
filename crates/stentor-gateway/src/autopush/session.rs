//! The protocol without IO: maps each text received to steps of the connection.

use std::time::Duration;

use stentor_core::id::MessageId;
use stentor_core::time::Timestamp;

use super::REGISTRATIONS_MAX_COUNT;
use super::frames::{self, AutopushRequest, AutopushResult, AutopushUpdate, FrameError};
use crate::stats::AutopushFailure;
use stentor_wire::web_push::VapidKey;

/// Shortest interval between two pings of a device (autopush closes connections that ping sooner).
const PING_INTERVAL_MIN: Duration = Duration::from_secs(45);

/// The reason for which the server closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutopushClose {
    /// The agent may reconnect: another connection has its place, or it must subscribe again.
    Normal,
    /// The server stops.
    GoingAway,
    /// The agent violated the protocol.
    Protocol,
    /// The agent sent too many requests.
    Policy,
    /// A frame is too large.
    TooLarge,
    /// The server failed.
    Failed,
}

impl AutopushClose {
    /// Returns the close code of the WebSocket (RFC 6455, 7.4.1).
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Normal => 1_000,
            Self::GoingAway => 1_001,
            Self::Protocol => 1_002,
            Self::Policy => 1_008,
            Self::TooLarge => 1_009,
            Self::Failed => 1_011,
        }
    }
}

/// A step of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutopushStep {
    /// Writes a text.
    Write(String),
    /// Looks the agent up, and greets it.
    Identify(Option<String>),
    /// Creates a subscription.
    Register {
        /// Its name.
        channel: String,
        /// The only key that may send to the subscription.
        key: Option<VapidKey>,
    },
    /// Ends a subscription.
    Unregister(String),
    /// Records a device's result for a message of a channel. The message is not sent again, independent of the result.
    End {
        /// The channel.
        channel: String,
        /// The message.
        message: MessageId,
        /// The result.
        result: AutopushResult,
    },
    /// Counts a delivery whose handler failed after the confirmation.
    Count(AutopushFailure),
    /// Ends the connection.
    Close(AutopushClose),
}

/// The protocol state of a connection.
#[derive(Debug, Default)]
pub struct AutopushState {
    has_greeted: bool,
    pinged_at: Option<Timestamp>,
    registrations_count: usize,
}

impl AutopushState {
    /// Returns true if the first message has come.
    #[must_use]
    pub const fn has_greeted(&self) -> bool {
        self.has_greeted
    }

    /// Processes a text frame; returns the next steps, in order.
    pub fn take(&mut self, text: &str, now: Timestamp) -> Vec<AutopushStep> {
        let request = match AutopushRequest::read(text) {
            Ok(request) => request,
            Err(FrameError::TooLarge) => return vec![AutopushStep::Close(AutopushClose::TooLarge)],
            Err(_) => return vec![AutopushStep::Close(AutopushClose::Protocol)],
        };
        match (self.has_greeted, request) {
            (false, AutopushRequest::Hello(agent)) => {
                self.has_greeted = true;
                vec![AutopushStep::Identify(agent)]
            }
            // `hello` must be the first message, and must not be repeated.
            (false, _) | (true, AutopushRequest::Hello(_)) => {
                vec![AutopushStep::Close(AutopushClose::Protocol)]
            }
            (true, request) => self.take_known(request, now),
        }
    }

    fn take_known(&mut self, request: AutopushRequest, now: Timestamp) -> Vec<AutopushStep> {
        match request {
            AutopushRequest::Register { channel, key } => vec![self.register(channel, key)],
            AutopushRequest::Unregister(channel) => vec![AutopushStep::Unregister(channel)],
            AutopushRequest::Ack(updates) => updates.into_iter().filter_map(ended).collect(),
            AutopushRequest::Ping => vec![self.ping(now)],
            AutopushRequest::Nack(failure) => vec![AutopushStep::Count(failure)],
            AutopushRequest::Announcements | AutopushRequest::Hello(_) => Vec::new(),
        }
    }

    fn register(&mut self, channel: String, key: Option<String>) -> AutopushStep {
        self.registrations_count += 1;
        if self.registrations_count > REGISTRATIONS_MAX_COUNT {
            return AutopushStep::Close(AutopushClose::Policy);
        }
        match key.map(|text| VapidKey::read(&text)) {
            Some(None) => {
                let why = "the key is not 65 bytes of an uncompressed P-256 point in base64url";
                AutopushStep::Write(frames::not_registered(&channel, 400, why))
            }
            Some(Some(key)) => AutopushStep::Register { channel, key: Some(key) },
            None => AutopushStep::Register { channel, key: None },
        }
    }

    fn ping(&mut self, now: Timestamp) -> AutopushStep {
        // After the clock went back, the time since the last ping is unknown.
        let is_soon = |before| before <= now && now.since(before) < PING_INTERVAL_MIN;
        let is_too_soon = self.pinged_at.is_some_and(is_soon);
        self.pinged_at = Some(now);
        match is_too_soon {
            true => AutopushStep::Close(AutopushClose::Policy),
            false => AutopushStep::Write(frames::pong()),
        }
    }
}

/// Maps an update to its step. A version that is no message id is ignored.
fn ended(AutopushUpdate { channel, version, result }: AutopushUpdate) -> Option<AutopushStep> {
    Some(AutopushStep::End { channel, message: version.parse().ok()?, result })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = r#"{"messageType":"hello","use_webpush":true}"#;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn greeted() -> AutopushState {
        let mut state = AutopushState::default();
        assert_eq!(state.take(HELLO, at(0)), [AutopushStep::Identify(None)]);
        state
    }

    #[test]
    fn the_first_message_is_hello_and_comes_once() {
        for text in ["{}", r#"{"messageType":"ack","updates":[]}"#, "nonsense"] {
            let steps = AutopushState::default().take(text, at(0));
            assert_eq!(steps, [AutopushStep::Close(AutopushClose::Protocol)], "{text}");
        }
        assert_eq!(greeted().take(HELLO, at(1)), [AutopushStep::Close(AutopushClose::Protocol)]);
    }

    #[test]
    fn a_ping_is_answered_and_a_second_one_too_soon_ends_it() {
        let mut state = greeted();
        assert_eq!(state.take("{}", at(0)), [AutopushStep::Write("{}".to_owned())]);
        assert_eq!(state.take("{}", at(45)), [AutopushStep::Write("{}".to_owned())]);
        assert_eq!(state.take("{}", at(46)), [AutopushStep::Close(AutopushClose::Policy)]);
    }

    #[test]
    fn every_code_ends_a_delivery_and_foreign_versions_do_not() {
        let id = MessageId::from_raw(77);
        let update = |code: u64| format!(r#"{{"channelID":"c","version":"{id}","code":{code}}}"#);
        let text = format!(
            r#"{{"messageType":"ack","updates":[{},{},{},{{"channelID":"c","version":"v"}}]}}"#,
            update(100),
            update(101),
            update(102)
        );
        let results = [AutopushResult::Delivered, AutopushResult::NotDecrypted, AutopushResult::NotDelivered];
        let end = |result| AutopushStep::End { channel: "c".to_owned(), message: id, result };
        assert_eq!(greeted().take(&text, at(0)), results.map(end));
        let failed = greeted().take(r#"{"messageType":"nack","version":"v","code":302}"#, at(0));
        assert_eq!(failed, [AutopushStep::Count(AutopushFailure::Rejection)]);
    }

    #[test]
    fn a_key_that_is_none_is_refused_and_the_connection_stays() {
        let mut state = greeted();
        let steps = state.take(r#"{"messageType":"register","channelID":"c","key":"AAAA"}"#, at(0));
        assert!(
            matches!(&steps[..], [AutopushStep::Write(text)] if text.contains(r#""status":400"#)),
            "{steps:?}"
        );
        let steps = state.take(r#"{"messageType":"register","channelID":"c"}"#, at(0));
        assert_eq!(steps, [AutopushStep::Register { channel: "c".to_owned(), key: None }]);
    }

    #[test]
    fn a_connection_registers_so_often_and_no_more() {
        let mut state = greeted();
        let register = r#"{"messageType":"register","channelID":"c"}"#;
        for _ in 0..REGISTRATIONS_MAX_COUNT {
            assert!(matches!(state.take(register, at(0))[..], [AutopushStep::Register { .. }]));
        }
        assert_eq!(state.take(register, at(0)), [AutopushStep::Close(AutopushClose::Policy)]);
    }
}
