//! The standing of this node: whether it may still act for its instance. A node that was suspended for longer than the heartbeat timeout
//! must neither lease nor send before its next heartbeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::uptime;

/// The standing of a node among the nodes that share its store.
#[derive(Debug)]
pub struct NodeStanding {
    instance: AtomicU64,
    /// Uptime of this machine until which the other nodes count this one as alive, in milliseconds; unlimited without other nodes.
    sure_until_ms: AtomicU64,
    is_first: AtomicBool,
    is_shared: bool,
}

impl NodeStanding {
    /// Creates the standing of a single node, which may always act.
    #[must_use]
    pub fn alone(instance: u64) -> Arc<Self> {
        Self::until(instance, u64::MAX, false)
    }

    /// Creates the standing of one node among others, before its first heartbeat.
    #[must_use]
    pub fn among(instance: u64) -> Arc<Self> {
        Self::until(instance, 0, true)
    }

    fn until(instance: u64, sure_until_ms: u64, is_shared: bool) -> Arc<Self> {
        Arc::new(Self {
            instance: AtomicU64::new(instance),
            sure_until_ms: AtomicU64::new(sure_until_ms),
            is_first: AtomicBool::new(!is_shared),
            is_shared,
        })
    }

    /// Returns the instance under which the node leases.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.instance.load(Ordering::Acquire)
    }

    /// Returns true if this node still owns the chunks that it leases and sends.
    #[must_use]
    pub fn may_act(&self) -> bool {
        let now_ms = u64::try_from(uptime().as_millis()).unwrap_or(u64::MAX);
        now_ms < self.sure_until_ms.load(Ordering::Acquire)
    }

    /// Returns true if there may be other nodes.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns true for the one node that does the work that must be done only once.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.is_first.load(Ordering::Acquire)
    }

    /// Records a heartbeat that was sent after the uptime `sent_at`. The other nodes wait for the next one for `patience`.
    pub(crate) fn note_alive(&self, sent_at: Duration, patience: Duration, is_first: bool) {
        let until = sent_at + patience;
        self.is_first.store(is_first, Ordering::Release);
        // Stored last, with release ordering: a reader that finds that it may act also sees `is_first`.
        self.sure_until_ms.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Records that other nodes removed this one as dead: it no longer owns anything of its former instance.
    pub(crate) fn renew(&self, instance: u64) {
        self.is_first.store(false, Ordering::Release);
        self.sure_until_ms.store(0, Ordering::Release);
        // Stored last, with release ordering: a reader that sees the new instance also sees that it may not act before the next heartbeat.
        self.instance.store(instance, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_among_others_acts_only_after_a_sign_of_life_and_not_for_longer() {
        assert!(NodeStanding::alone(1).may_act());
        let among = NodeStanding::among(1);
        assert!(!among.may_act() && !among.is_first());
        among.note_alive(uptime(), Duration::from_secs(3_600), true);
        assert!(among.may_act() && among.is_first());
        among.note_alive(uptime(), Duration::ZERO, true);
        assert!(!among.may_act(), "the others wait no longer");
        among.note_alive(uptime(), Duration::from_secs(3_600), true);
        among.renew(2);
        assert!(!among.may_act() && !among.is_first());
        assert_eq!(among.instance(), 2);
    }
}
