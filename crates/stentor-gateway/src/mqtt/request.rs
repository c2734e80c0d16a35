//! What a device asks for, in whichever version it says it.

use secrecy::SecretString;

use super::fault::MqttFault;

/// The version that a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MqttVersion {
    /// 3.1.1 (OASIS, 2014).
    V3,
    /// 5.0 (OASIS, 2019).
    V5,
}

/// One packet of a device.
#[derive(Debug)]
pub(super) enum MqttRequest {
    /// The first one.
    Connect(Box<MqttConnect>),
    /// A message to the app.
    Publish(Box<MqttPublish>),
    /// The device has got a delivery.
    Puback(u16),
    /// Filters, each with what is wanted of it.
    Subscribe { packet_id: u16, filters: Vec<(String, MqttFilterOptions)> },
    /// The device leaves these filters.
    Unsubscribe { packet_id: u16, filters: Vec<String> },
    /// Asks whether we are there.
    Ping,
    /// The last one; MQTT 5 may say anew how long the session is to go on.
    Disconnect { with_will: bool, session_expiry_seconds: Option<u32> },
}

/// The options of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MqttFilterOptions {
    /// The best QoS that is wanted, 0 to 2.
    pub(super) qos: u8,
    /// Whether the retain flag comes as the app has sent it (3.8.3.1 of MQTT 5).
    pub(super) is_as_published: bool,
    /// When the last states of topics are wanted.
    pub(super) last_states: WantedLastStates,
}

/// When a subscription wants the last states of its topics: the retain handling of MQTT 5; in 3.1.1 always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedLastStates {
    /// Whenever it is made.
    Always,
    /// When it was not there before.
    WhenNew,
    /// Not at all.
    Never,
}

/// How a device introduces itself.
#[derive(Debug)]
pub(super) struct MqttConnect {
    pub(super) version: MqttVersion,
    pub(super) client_id: String,
    /// Whether it wants a new session.
    pub(super) is_clean: bool,
    /// How long its session is to go on after the connection.
    pub(super) session_expiry_seconds: u32,
    pub(super) keep_alive_seconds: u16,
    pub(super) token: Option<String>,
    pub(super) secret: Option<SecretString>,
    pub(super) will: Option<MqttWill>,
    /// Deliveries of QoS 1 that it takes at once.
    pub(super) receive_max_count: u16,
    /// Largest packet that it takes.
    pub(super) packet_max_bytes: u32,
    /// Whether it wants to prove itself in another way than with its token and secret.
    pub(super) has_method: bool,
}

/// What is sent in a device's name when it is gone without a word.
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
    /// How long it may wait.
    pub(super) expiry_seconds: Option<u32>,
    /// The device's own name for it.
    pub(super) key: Option<String>,
}

impl MqttConnect {
    /// Returns whether its session outlives the connection.
    pub(super) const fn is_kept(&self) -> bool {
        self.session_expiry_seconds > 0
    }
}

impl MqttPublish {
    /// Returns a fault where it asks for what we said that we do not do.
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

    /// Returns whether its topic is one, and no filter (3.3.2-2 of both versions).
    pub(super) fn has_topic_name(&self) -> bool {
        !self.topic.is_empty() && !self.topic.contains(['+', '#'])
    }
}
