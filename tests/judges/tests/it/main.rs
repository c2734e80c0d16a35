//! Unmodified clients of the push services judge our emulators and fronts: behaviour that they accept is close enough.

mod apns;
mod authority;
mod browsers;
mod ccs;
mod client;
mod console;
mod console_persons;
mod documentation;
mod fcm;
mod fcm_front;
mod fronts;
mod gateway_ccs;
mod gateway_mcs;
mod gateway_mqtt;
mod gateway_server;
mod gcm;
mod hms;
mod policy;
mod room;
mod trust_store;
mod web_push;
mod web_push_emulator;
mod web_push_sender;
mod webhook;
mod wns;
