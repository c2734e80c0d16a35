//! Why a connection ends.

use mqtt_protocol_core::mqtt::result_code::{DisconnectReasonCode, MqttError};

use crate::session_state::Closed;

/// What a device did that it may not do, or what keeps us from serving it; MQTT 5 tells it (chapter 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MqttFault {
    /// What the device is told.
    pub(super) code: DisconnectReasonCode,
    /// The same for people.
    pub(super) text: &'static str,
}

impl MqttFault {
    pub(super) const fn new(code: DisconnectReasonCode, text: &'static str) -> Self {
        Self { code, text }
    }

    /// Returns the fault of a packet that breaks the rules of the protocol.
    pub(super) const fn protocol(text: &'static str) -> Self {
        Self::new(DisconnectReasonCode::ProtocolError, text)
    }

    /// Returns the fault of a packet that cannot be read.
    pub(super) const fn unreadable(error: MqttError) -> Self {
        match error {
            MqttError::PacketTooLarge => {
                Self::new(DisconnectReasonCode::PacketTooLarge, "the packet is too large")
            }
            MqttError::ProtocolError => Self::protocol("the packet breaks a rule of MQTT"),
            _ => Self::new(DisconnectReasonCode::MalformedPacket, "the packet cannot be read"),
        }
    }
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MqttEnd {
    /// The other side is gone, or takes nothing any more.
    Gone,
    /// The device has said so; `with_will` when it wants its will to be sent, and how long its session is to go on where
    /// that has changed.
    Left { with_will: bool, session_expiry_seconds: Option<u32> },
    /// The device did something that it may not do.
    Fault(MqttFault),
    /// The session ended from our side.
    Closed(Closed),
}

impl MqttEnd {
    /// Returns what the device is told, if it can be told anything.
    pub(super) const fn fault(self) -> Option<MqttFault> {
        match self {
            Self::Gone | Self::Left { .. } => None,
            Self::Closed(Closed::Silent) => Some(MqttFault::new(
                DisconnectReasonCode::KeepAliveTimeout,
                "nothing came for longer than the keep alive",
            )),
            Self::Fault(fault) => Some(fault),
            Self::Closed(Closed::TakenOver) => Some(MqttFault::new(
                DisconnectReasonCode::SessionTakenOver,
                "another connection of this device has taken its place",
            )),
            Self::Closed(Closed::CutOff) => Some(MqttFault::new(
                DisconnectReasonCode::AdministrativeAction,
                "the device was removed, or has another token",
            )),
            Self::Closed(Closed::Crowded) => Some(MqttFault::new(
                DisconnectReasonCode::QuotaExceeded,
                "the app has as many devices connected as it may have",
            )),
            Self::Closed(Closed::Stopping) => {
                Some(MqttFault::new(DisconnectReasonCode::ServerShuttingDown, "the server stops"))
            }
        }
    }

    /// Returns how long the session is to go on, where the device has said that anew at the end.
    pub(super) const fn session_expiry(self) -> Option<u32> {
        match self {
            Self::Left { session_expiry_seconds, .. } => session_expiry_seconds,
            Self::Gone | Self::Fault(_) | Self::Closed(_) => None,
        }
    }

    /// Returns whether the device's will is to be sent. A server that stops says nothing of its devices.
    pub(super) const fn leaves_will(self) -> bool {
        match self {
            Self::Left { with_will, .. } => with_will,
            Self::Closed(Closed::Stopping | Closed::CutOff | Closed::Crowded) => false,
            Self::Gone | Self::Fault(_) | Self::Closed(Closed::TakenOver | Closed::Silent) => true,
        }
    }
}

impl From<MqttFault> for MqttEnd {
    fn from(fault: MqttFault) -> Self {
        Self::Fault(fault)
    }
}
