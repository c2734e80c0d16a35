//! MCS: the protocol of GCM's and FCM's devices, of which we are the server. Facts of it are in Chromium's `mcs.proto` and
//! `google_apis/gcm`.
//!
//! A program checks in ([`check_in`]) and is given an android id with a security token; it registers for senders
//! ([`register`], [`register_web`]) and gets a token for each, which is one device of ours; then it connects ([`serve`]) once for
//! all of them. What a program has registered are channels in the store; the security token is derived from the android id, and
//! kept nowhere.

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
    INSTALLATION_HEADER, McsInstallation, McsRegistrar, McsReply, check_in, install, register, register_web,
    renew_installation, subscribe, unregister_web,
};
pub use limits::McsLimits;
pub use session::serve;
