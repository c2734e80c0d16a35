//! Where a host's addresses come from, and which of them may be connected to.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use futures_util::future::BoxFuture;

/// Finds the addresses of a host and says which of them may be connected to.
///
/// It is asked for each connection, which then goes to an address that was checked and to no other.
pub trait Addresses: Debug + Send + Sync {
    /// Finds the addresses of a name, or of an address in whatever spelling; with the system's resolver unless said
    /// otherwise.
    fn look_up(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let host = host.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }

    /// Returns whether an address may be connected to; the error says why not.
    fn check(&self, address: SocketAddr) -> Result<(), String>;
}

/// Allows every address that the system's resolver finds.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllAddresses;

impl Addresses for AllAddresses {
    fn check(&self, _address: SocketAddr) -> Result<(), String> {
        Ok(())
    }
}
