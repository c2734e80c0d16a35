//! A server of MCS, the protocol of GCM's and FCM's devices. The protocol is described by Chromium's `mcs.proto` and `google_apis/gcm`.
//!
//! A program checks in ([`check_in`]) and gets an android id with a security token. It registers for senders ([`register`],
//! [`register_web`]) and gets a token for each registration, which is one device of Stentor. Then it connects ([`serve`]) once for all of
//! them. The store keeps a program's registrations as channels. The security token is derived from the android id and not stored.

mod agent;
mod agent_registry;
mod channel;
mod data_stanza;
mod frames;
mod handshake;
mod http;
mod limits;
mod link;
mod persistent_id;
mod registration;
mod sealed;
mod session;
mod upstream;

pub use agent::McsAgent;
pub(crate) use agent_registry::McsAgentRegistry;
pub use frames::{McsReadError, McsReader};
pub use http::{
    INSTALLATION_HEADER, McsInstallation, McsRegistrar, McsReply, McsWebCaller, check_in, install, register,
    register_web, renew_installation, subscribe, unregister_web,
};
pub use limits::McsLimits;
pub use session::serve;
