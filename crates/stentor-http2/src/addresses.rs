//! Name resolution, and the check of addresses before connecting.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use futures_util::future::BoxFuture;

/// Resolves a host and decides which of its addresses are allowed.
///
/// The client calls it for each connection, and then connects only to an address that passed the check.
pub trait Addresses: Debug + Send + Sync {
    /// Resolves a name, or an address in any notation. The default implementation uses the system's resolver.
    fn look_up(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let host = host.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }

    /// Fails with the reason if connections to an address are not allowed.
    fn check(&self, address: SocketAddr) -> Result<(), String>;
}

/// Allows every address from the system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllAddresses;

impl Addresses for AllAddresses {
    fn check(&self, _address: SocketAddr) -> Result<(), String> {
        Ok(())
    }
}
