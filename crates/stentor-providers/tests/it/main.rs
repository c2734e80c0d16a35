//! The adapters against the emulators, over real TLS and HTTP/2.
#![allow(missing_docs, reason = "tests")]

mod apns;
mod credentials;
mod fcm;
mod gcm;
mod hms;
mod live_activity;
mod outbound;
mod push_service;
mod support;
mod web_push;
mod wns;
