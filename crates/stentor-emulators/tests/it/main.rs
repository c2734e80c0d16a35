//! The emulators over real sockets: h2 at frame level, reqwest for whole requests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod apns;
mod apns_channels;
mod app_server;
mod arrival;
mod ccs;
mod control;
mod faults;
mod fcm;
mod frames;
mod gcm;
mod hms;
mod kill;
mod observer;
mod provider_token;
mod rig;
mod sink;
mod tls;
mod topics;
mod web_push;
mod whims;
mod wns;
