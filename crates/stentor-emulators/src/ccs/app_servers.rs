//! The registry of app servers that have logged in.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One connection of an app server, as the control port shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppServerConnection {
    /// The number of the connection.
    pub connection: u64,
    /// The sender id of the app server.
    pub sender_id: String,
    /// True after the app server was notified that the connection is draining.
    pub draining: bool,
    /// Messages for devices that have no answer yet.
    pub downstream_pending: u64,
    /// Messages from devices that it has not acknowledged.
    pub upstream_unacked: u64,
}

/// The connections that have logged in, by number.
pub(super) struct AppServers {
    max_per_sender: usize,
    connections: Mutex<BTreeMap<u64, AppServerConnection>>,
}

impl AppServers {
    pub(super) fn new(max_per_sender: usize) -> Self {
        Self { max_per_sender, connections: Mutex::default() }
    }

    /// Adds a connection; false when its sender has too many.
    pub(super) fn join(&self, connection: u64, sender_id: &str) -> bool {
        // Counted and added under one lock: of two logins at once, one takes the last place.
        let mut connections = self.connections.lock();
        let theirs = connections.values().filter(|other| other.sender_id == sender_id).count();
        if theirs >= self.max_per_sender {
            return false;
        }
        let sender_id = sender_id.to_owned();
        let (draining, downstream_pending, upstream_unacked) = (false, 0, 0);
        let joined =
            AppServerConnection { connection, sender_id, draining, downstream_pending, upstream_unacked };
        connections.insert(connection, joined);
        true
    }

    /// Updates the state of a connection.
    pub(super) fn note(&self, connection: u64, draining: bool, pending: usize, unacked: usize) {
        let mut connections = self.connections.lock();
        if let Some(connection) = connections.get_mut(&connection) {
            connection.draining = draining;
            connection.downstream_pending = pending as u64;
            connection.upstream_unacked = unacked as u64;
        }
    }

    /// Removes a connection.
    pub(super) fn leave(&self, connection: u64) {
        self.connections.lock().remove(&connection);
    }

    /// Returns all connections.
    pub(super) fn list(&self) -> Vec<AppServerConnection> {
        let connections = self.connections.lock();
        connections.values().cloned().collect()
    }
}
