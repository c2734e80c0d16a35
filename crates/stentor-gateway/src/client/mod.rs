//! The device's side of the protocols, for tests, for the command line and for measuring. Nothing here is used to serve.

mod mcs;

pub use mcs::{McsClient, McsClientError, McsClientEvent, McsClientLogin, McsUpstream};
