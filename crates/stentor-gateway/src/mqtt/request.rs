//! Requests of a device, independent of the protocol version.

use secrecy::SecretString;

use super::fault::MqttFault;

/// The protocol version of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MqttVersion {
    /// 3.1.1 (OASIS, 2014).
    V3,
    /// 5.0 (OASIS, 2019).
    V5,
}

/// A packet of a device.
#[derive(Debug)]
pub(super) enum MqttRequest {
    /// The login.
    Connect(Box<MqttConnect>),
    /// A message to the app.
    Publish(Box<MqttPublish>),
    /// The acknowledgement of a delivery.
    Puback(u16),
    /// A subscription to filters, each with its options.
    Subscribe { packet_id: u16, filters: Vec<(String, MqttFilterOptions)> },
    /// The end of subscriptions to filters.
    Unsubscribe { packet_id: u16, filters: Vec<String> },
    /// A ping.
    Ping,
    /// The end of the connection; MQTT 5 may change the session expiry.
    Disconnect { with_will: bool, session_expiry_seconds: Option<u32> },
}

/// The options of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MqttFilterOptions {
    /// The highest QoS requested, 0 to 2.
    pub(super) qos: u8,
    /// True if the retain flag must be passed on as published (3.8.3.1 of MQTT 5).
    pub(super) is_as_published: bool,
    /// The condition for sending the last states of topics.
    pub(super) last_states: WantedLastStates,
}

/// The condition for sending the last states of topics to a subscription: the retain handling of MQTT 5; always in 3.1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedLastStates {
    /// At each subscription.
    Always,
    /// Only if the subscription is new.
    WhenNew,
    /// Not at all.
    Never,
}

/// The contents of a CONNECT.
#[derive(Debug)]
pub(super) struct MqttConnect {
    pub(super) version: MqttVersion,
    pub(super) client_id: String,
    /// True if it requests a new session.
    pub(super) is_clean: bool,
    /// Lifetime of its session after the connection.
    pub(super) session_expiry_seconds: u32,
    pub(super) keep_alive_seconds: u16,
    pub(super) token: Option<String>,
    pub(super) secret: Option<SecretString>,
    pub(super) will: Option<MqttWill>,
    /// Most unacknowledged deliveries of QoS 1 that it accepts.
    pub(super) receive_max_count: u16,
    /// Largest packet that it accepts.
    pub(super) packet_max_bytes: u32,
    /// True if it requests another authentication method than token and secret.
    pub(super) has_method: bool,
}

/// The message to send in a device's name when its connection is lost.
#[derive(Debug)]
pub(super) struct MqttWill {
    pub(super) publish: MqttPublish,
    pub(super) delay_seconds: u32,
}

/// A message of a device.
#[derive(Debug)]
pub(super) struct MqttPublish {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    /// 0 to 2.
    pub(super) qos: u8,
    /// Zero with QoS 0.
    pub(super) packet_id: u16,
    /// Time to live in seconds.
    pub(super) expiry_seconds: Option<u32>,
    /// The device's own id of the message.
    pub(super) key: Option<String>,
}

impl MqttConnect {
    /// Returns true if its session outlives the connection.
    pub(super) const fn is_kept(&self) -> bool {
        self.session_expiry_seconds > 0
    }
}

impl MqttPublish {
    /// Fails if it requests a feature that the server announced as unsupported.
    pub(super) fn checked(self) -> Result<Self, MqttFault> {
        use mqtt_protocol_core::mqtt::result_code::DisconnectReasonCode as Code;
        if !self.has_topic_name() {
            return Err(MqttFault::new(Code::TopicNameInvalid, "a topic to publish to has no wildcards"));
        }
        if self.qos > 1 {
            return Err(MqttFault::new(Code::QosNotSupported, "QoS 0 and 1 are supported"));
        }
        if self.qos == 1 && self.packet_id == 0 {
            return Err(MqttFault::protocol("a packet identifier is not zero"));
        }
        Ok(self)
    }

    /// Returns true if its topic is a topic name, and no filter (3.3.2-2 of both versions).
    pub(super) fn has_topic_name(&self) -> bool {
        !self.topic.is_empty() && !self.topic.contains(['+', '#'])
    }
}
