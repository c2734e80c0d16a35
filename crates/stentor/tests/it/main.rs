//! End-to-end stories: real processes, started as a user would start them.
#![allow(clippy::unwrap_used, reason = "a story that cannot go on has failed")]

mod abilities;
mod backup;
mod bench;
mod bulk;
mod claims;
mod clients;
mod clock;
mod commands;
mod demo;
mod description;
mod device_clients;
mod device_run;
mod device_story;
mod device_unit;
mod discovery;
mod doctor;
mod emulated_devices;
mod energy;
mod faces;
mod faces_grpc;
mod lab;
mod link;
mod logs;
mod messages;
mod packaging;
mod probe;
mod process;
mod regressions;
mod repeats;
mod rest;
mod server;
mod stalled;
mod studies;
mod subject;
mod webhook;
