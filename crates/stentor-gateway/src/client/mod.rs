//! The device's side of the protocols, for tests, the command line and measurements. The server does not use it.

mod mcs;

pub use mcs::{McsClient, McsClientError, McsClientEvent, McsClientLogin, McsUpstream};
