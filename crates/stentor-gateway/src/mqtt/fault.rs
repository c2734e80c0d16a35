//! Reasons for the end of a connection.

use mqtt_protocol_core::mqtt::result_code::{DisconnectReasonCode, MqttError};

use crate::session_state::Closed;

/// A violation by a device, or a failure to serve it. MQTT 5 reports it to the device (chapter 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MqttFault {
    /// The reason code sent to the device.
    pub(super) code: DisconnectReasonCode,
    /// A description for people.
    pub(super) text: &'static str,
}

impl MqttFault {
    pub(super) const fn new(code: DisconnectReasonCode, text: &'static str) -> Self {
        Self { code, text }
    }

    /// Creates the fault of a packet that breaks the rules of the protocol.
    pub(super) const fn protocol(text: &'static str) -> Self {
        Self::new(DisconnectReasonCode::ProtocolError, text)
    }

    /// Creates the fault of an unreadable packet.
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

/// The end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MqttEnd {
    /// The peer is gone, or no longer reads.
    Gone,
    /// The device disconnected. `with_will` is set if it wants its will to be sent; the other field is the changed session expiry, if it
    /// sent one.
    Left { with_will: bool, session_expiry_seconds: Option<u32> },
    /// The device violated a rule.
    Fault(MqttFault),
    /// The server ended the session.
    Closed(Closed),
}

impl MqttEnd {
    /// Returns the fault to report to the device, if there is one.
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

    /// Returns the session expiry, if the device changed it at the end.
    pub(super) const fn session_expiry(self) -> Option<u32> {
        match self {
            Self::Left { session_expiry_seconds, .. } => session_expiry_seconds,
            Self::Gone | Self::Fault(_) | Self::Closed(_) => None,
        }
    }

    /// Returns true if the device's will must be sent. A server that stops sends no wills.
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
