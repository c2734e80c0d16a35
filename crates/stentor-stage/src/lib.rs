//! The stage of demos and kills: servers and emulators as processes of their own, devices, kills, troubles, and the proof that
//! nothing was lost. Options go in and reports come out. A [`reporter::Reporter`] gets the progress.
#![forbid(unsafe_code)]

pub mod ccs_client;
pub mod child_process;
pub mod client;
pub mod demo;
pub mod devices;
pub mod emulated;
pub mod emulator;
pub mod engines;
pub mod failure;
pub mod files;
pub mod import;
pub mod keys;
pub mod kill;
pub mod ledger;
pub mod limits;
pub mod mqtt_devices;
pub mod mqtt_packets;
pub mod nats;
pub mod nodes;
pub mod policy;
pub mod postgres;
pub mod programs;
pub mod reporter;
pub mod server;
pub mod stage;
pub mod text;
pub mod troubles;
