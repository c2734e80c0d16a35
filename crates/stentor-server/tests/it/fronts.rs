//! Fronts: third-party APIs, called as their clients call them.

mod ccs;
pub(crate) mod fcm_v1;
mod gcm_http;
mod gorush;
