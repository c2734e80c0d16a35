//! Fronts: APIs of others, asked as their clients ask.

mod ccs;
pub(crate) mod fcm_v1;
mod gcm_http;
mod gorush;
