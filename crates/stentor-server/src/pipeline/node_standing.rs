//! Whether this process may still act for the instance that it is: a node that was paused longer than the others wait must
//! neither lease nor send before it has shown that it lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::uptime;

/// How a node stands among those that share its store.
#[derive(Debug)]
pub struct NodeStanding {
    instance: AtomicU64,
    /// Until which uptime of this machine the others take it for alive, in milliseconds; without end where there are none.
    sure_until_ms: AtomicU64,
    is_first: AtomicBool,
    is_shared: bool,
}

impl NodeStanding {
    /// Stands alone: nobody else judges it.
    #[must_use]
    pub fn alone(instance: u64) -> Arc<Self> {
        Self::until(instance, u64::MAX, false)
    }

    /// Stands among others, which have not heard of it yet.
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

    /// Returns the number under which it leases.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.instance.load(Ordering::Acquire)
    }

    /// Returns whether what it leases and sends is its own to settle.
    #[must_use]
    pub fn may_act(&self) -> bool {
        let now_ms = u64::try_from(uptime().as_millis()).unwrap_or(u64::MAX);
        now_ms < self.sure_until_ms.load(Ordering::Acquire)
    }

    /// Returns whether there may be others.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns whether it is the node that does what one alone must do.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.is_first.load(Ordering::Acquire)
    }

    /// Notes a sign of life that was given after the uptime `asked`: the others wait for the next one as long as `patience`.
    pub(crate) fn note_alive(&self, asked: Duration, patience: Duration, is_first: bool) {
        let until = asked + patience;
        self.is_first.store(is_first, Ordering::Release);
        // Last, and released: whoever finds that it may act knows already whether it is the first.
        self.sure_until_ms.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Notes that it was taken for dead: nothing of the former number is its own any more.
    pub(crate) fn renew(&self, instance: u64) {
        self.is_first.store(false, Ordering::Release);
        self.sure_until_ms.store(0, Ordering::Release);
        // Last, and released: whoever reads the new number finds that it may not act under it before its next sign of
        // life.
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
