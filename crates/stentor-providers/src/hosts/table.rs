//! The hosts of an app's devices, by origin.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stentor_core::time::Timestamp;
use stentor_http2::Roots;

use super::host::Host;
use crate::Setup;

/// Hosts that are kept. Anyone who may register a device can name a new one.
const HOSTS_MAX_COUNT: usize = 512;

/// The hosts in use.
pub(super) struct Hosts {
    setup: Setup,
    roots: Roots,
    known: Mutex<HashMap<String, KnownHost>>,
}

struct KnownHost {
    host: Arc<Host>,
    used_at: Timestamp,
}

impl Hosts {
    pub(super) fn new(setup: Setup, roots: Roots) -> Self {
        Self { setup, roots, known: Mutex::default() }
    }

    /// Returns the host of an origin. `None` if it is no origin, or if too many others are in use.
    pub(super) fn get(&self, origin: &str, now: Timestamp) -> Option<Arc<Host>> {
        let mut known = self.known.lock();
        if let Some(found) = known.get_mut(origin) {
            found.used_at = now;
            return Some(Arc::clone(&found.host));
        }
        if known.len() >= HOSTS_MAX_COUNT {
            let unused = known.iter().filter(|(_, one)| Arc::strong_count(&one.host) == 1);
            let oldest = unused.min_by_key(|(_, one)| one.used_at).map(|(origin, _)| origin.clone())?;
            known.remove(&oldest);
        }
        let host = Arc::new(Host::open(origin, &self.roots, &self.setup)?);
        known.insert(origin.to_owned(), KnownHost { host: Arc::clone(&host), used_at: now });
        Some(host)
    }

    /// Returns all hosts in use.
    pub(super) fn all(&self) -> Vec<Arc<Host>> {
        self.known.lock().values().map(|one| Arc::clone(&one.host)).collect()
    }
}
