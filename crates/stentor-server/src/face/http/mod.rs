//! Common parts of all faces over HTTP: authentication, limits, timeouts, logging and refusals.

pub(crate) mod auth;
pub(crate) mod body;
pub(in crate::face) mod coding;
mod context;
pub(crate) mod entry;
pub(crate) mod headers;
pub(crate) mod held_reply;
pub(in crate::face) mod limited_body;
pub(crate) mod middleware;
pub(crate) mod origin;
pub(in crate::face) mod preferences;
pub(crate) mod refusal;
mod request_permit;
pub(in crate::face) mod session_cookie;
mod unread_body;
mod zstd_header;

pub use context::RequestContext;
pub use entry::{EntryPoint, EntryRule};
pub(crate) use entry::{LimitedRouter, Routes};
pub use refusal::status_of;
pub(crate) use request_permit::RequestPermit;
pub(in crate::face) use request_permit::no_room;
