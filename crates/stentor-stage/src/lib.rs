//! The stage of demos, benches and studies: servers and emulators as processes of their own, devices, kills, troubles, and
//! the proof that nothing was lost. Options go in and reports come out; what is told on the way goes to a [`reporter::Reporter`].
#![forbid(unsafe_code)]

pub mod bench;
pub mod ccs_client;
pub mod child_process;
pub mod client;
pub mod cluster;
pub mod demo;
pub mod device_load;
pub mod devices;
pub mod emulated;
pub mod emulator;
pub mod engines;
pub mod faces;
pub mod failure;
pub mod features;
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
pub(crate) mod orders;
pub mod policy;
pub mod postgres;
pub mod push_subject;
pub mod reporter;
pub mod scaling;
pub mod server;
pub mod stage;
pub mod text;
pub mod troubles;
