//! The app server's side: the Cloud Connection Server of GCM and FCM, XMPP (RFC 6120) with JSON payloads.
//!
//! An app server logs in with the number of its app and one of the app's keys. Its messages are acknowledged once they are on disk.
//! Messages of devices are handed to it until it acknowledges them. Sources: "GCM Cloud Connection Server (XMPP)" and "Server Reference",
//! as kept in AOSP, and "XMPP server reference" of Firebase.

mod connection;
mod element;
pub mod fuzzing;
mod iq;
mod login;
mod payload;
mod reader;
mod stream;

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::{Map, Value};
use stentor_core::id::AppId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::limits::CCS_LOGIN_TIMEOUT;
use crate::upstream_broker::UpstreamBroker;
use connection::CcsConnection;
use stream::{CcsEnd, XmppStream};

pub use payload::CcsRefusal;

/// The reason for a failed login of an app server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CcsLoginError {
    /// The key is unknown, belongs to another app, or may not send.
    #[error("the key does not fit")]
    Refused,
    /// The key cannot be checked now.
    #[error("the server cannot check the key now")]
    Unavailable,
}

/// The verification of app keys.
#[async_trait]
pub trait CcsPort: Send + Sync + 'static {
    /// Opens an app with one of its keys.
    async fn log_in(&self, app: AppId, key: &SecretString) -> Result<Arc<dyn CcsAppSession>, CcsLoginError>;
}

/// An app server that has logged in.
#[async_trait]
pub trait CcsAppSession: Send + Sync + 'static {
    /// Returns its app.
    fn app(&self) -> AppId;

    /// Checks if it could log in now: its key may have been removed since its login.
    async fn still_allowed(&self) -> Result<(), CcsLoginError>;

    /// Accepts a message, given as the fields of its JSON. On success the message is on disk.
    async fn send(&self, fields: Map<String, Value>) -> Result<(), CcsRefusal>;
}

/// The services shared by the connections of app servers; clones share them.
#[derive(Clone)]
pub struct CcsServer {
    gateway: Gateway,
    broker: Arc<UpstreamBroker>,
    port: Arc<dyn CcsPort>,
}

impl CcsServer {
    /// Creates a server from its parts.
    #[must_use]
    pub fn new(gateway: Gateway, broker: Arc<UpstreamBroker>, port: Arc<dyn CcsPort>) -> Self {
        Self { gateway, broker, port }
    }
}

/// Serves one connection until it ends; the listener must have encrypted it from the first byte. After `stopping` is cancelled the app
/// server is notified, and has some seconds. `admitted` is cancelled once the app server has logged in.
pub async fn serve<S>(
    server: CcsServer,
    connection: S,
    stopping: CancellationToken,
    admitted: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut stream = XmppStream::new(connection);
    let login = tokio::select! {
        login = timeout(CCS_LOGIN_TIMEOUT, login::log_in(&mut stream, server.port.as_ref())) => login,
        () = stopping.cancelled() => Ok(Err(CcsEnd::Refused("system-shutdown"))),
    };
    match login.unwrap_or(Err(CcsEnd::Refused("connection-timeout"))) {
        Ok(login) => {
            admitted.cancel();
            CcsConnection::new(stream, server, login).run(stopping).await;
        }
        Err(end) => stream.close(&end).await,
    }
}
