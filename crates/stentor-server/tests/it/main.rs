//! The server through its REST face, as its callers see it.

mod harness;

mod at_rest;
mod audit;
mod bad_input;
mod connections;
mod contract;
mod device_ports;
mod devices;
mod entry_points;
mod faces;
mod failures;
mod foreign;
mod fronts;
mod gateway;
mod given;
mod idempotency;
mod import;
mod limits;
mod messages;
mod named_hosts;
mod openapi;
mod operator;
mod pipeline;
mod problems;
mod regressions;
mod replies;
mod room;
mod services;
mod tenants;
mod tls;
mod trap;
mod upstream;
mod visibility;
mod web_push;
mod webhook;
