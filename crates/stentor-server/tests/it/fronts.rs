//! Fronts: APIs of others, asked as their clients ask.

mod gcm_http;
mod gorush;
