//! The request rate of each owner: a number per second, and a burst of twice as many.

use std::time::Duration;

use stentor_core::id::AppId;

use crate::arrival_limiter::{ArrivalLimiter, ArrivalRate};
use crate::owner::{Owner, SourceNetwork};

/// Counts the requests of each owner; the operator's are not counted.
#[derive(Debug)]
pub struct OwnerRates {
    apps: ArrivalLimiter<AppId>,
    parts: ArrivalLimiter<Owner>,
    addresses: ArrivalLimiter<SourceNetwork>,
}

impl OwnerRates {
    /// Sets the rate of an app, and the rate of an address without a key, of a device and of a guest.
    #[must_use]
    pub fn new(app_per_second: u32, other_per_second: u32) -> Self {
        let rate = |per_second: u32| ArrivalRate {
            burst_max_count: per_second.saturating_mul(2),
            per_second_max_count: per_second,
        };
        Self {
            apps: ArrivalLimiter::new(rate(app_per_second)),
            parts: ArrivalLimiter::new(rate(other_per_second)),
            addresses: ArrivalLimiter::new(rate(other_per_second)),
        }
    }

    /// Counts one more request; if the limit is exceeded, returns the time to wait.
    pub fn take(&self, owner: Owner) -> Result<(), Duration> {
        match owner {
            Owner::Operator => Ok(()),
            Owner::App(app) => self.apps.take(app),
            Owner::Device(..) | Owner::Guest(..) => self.parts.take(owner),
            Owner::Address(network) => self.addresses.take(network),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_has_its_own_number_and_the_operator_none() {
        let rates = OwnerRates::new(2, 1);
        let (app, network) = (AppId::from_raw(1), SourceNetwork::UNKNOWN);
        let count = |owner| (0..100).filter(|_| rates.take(owner).is_ok()).count();
        assert_eq!(count(Owner::Address(network)), 2);
        assert_eq!(count(Owner::Guest(app, network)), 2);
        assert_eq!(count(Owner::App(app)), 4);
        assert_eq!(count(Owner::Operator), 100);
    }
}
