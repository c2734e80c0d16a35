//! The push service for directly connected devices. The ledger is their mailbox.
//!
//! Messages that the pipeline settles as accepted for a device of the gateway wait in the ledger. A connected device gets them as soon as
//! they are settled (the gateway is a [`SettledFeed`](stentor_core::ports::settled::SettledFeed)). A device that connects later gets the
//! waiting ones ([`DeviceSession::next`]). Its confirmations are written as receipts into the same rows. So no second place can disagree
//! with the ledger, and a campaign to a million disconnected devices costs as few rows as any other.
//!
//! A [`DeviceSession`] is one connected device, independent of its protocol. The protocol takes deliveries from the session, writes them in
//! its own frames, and passes the device's confirmations back.
#![forbid(unsafe_code)]

mod accepted_messages;
pub mod autopush;
mod backlog;
mod batched_reads;
pub mod ccs;
pub mod client;
mod collapse;
mod confirming;
mod delivery;
mod delivery_cursor;
mod device_changes;
mod device_keys;
mod device_logins;
mod device_reads;
mod device_topics;
mod device_turns;
mod doubts;
mod gateway;
mod held_messages;
mod identity;
pub mod limits;
pub mod mcs;
pub mod mqtt;
mod parked_deliveries;
mod receipt_waits;
mod receipts;
mod registration;
mod registry;
mod sender_receipts;
mod session;
mod session_checks;
mod session_claims;
mod session_outcomes;
mod session_state;
mod silence;
mod stats;
mod upstream;
mod upstream_broker;
mod upstream_window;
pub mod web_push;

pub use delivery::PendingMessage;
pub use delivery_cursor::{DeliveryCursor, DeliveryCursorError};
pub use device_keys::{ContentError, SealedBy, SealedMessage};
pub use device_logins::LoginError;
pub use gateway::Gateway;
pub use identity::{DeviceCredentials, DeviceIdentity, GatewayKey};
pub use receipt_waits::ReceiptWait;
pub use sender_receipts::SENDER_RECEIPT_FIELD;
pub use session::{DeviceSession, SessionEvent};
pub use session_claims::SessionClaim;
pub use session_state::Closed;
pub use stats::{AutopushFailure, DeviceProtocol, GatewayCounts, GatewayStats};
pub use upstream::{UpstreamDraft, UpstreamError};
pub use upstream_broker::{UpstreamBroker, UpstreamConsumer};
