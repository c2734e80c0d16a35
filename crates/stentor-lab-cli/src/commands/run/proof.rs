//! A comparison of the emulators' counts of every single device with the ledger.

use super::site::{Site, SiteApp, services};
use std::collections::HashMap;
use stentor_lab::plan::PlatformMix;
use stentor_terminal::ledger::LedgerTotals;

/// Counts of the emulators.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Proof {
    /// Devices of the audience.
    pub(super) devices: u64,
    /// Devices with an attempt that an emulator answered.
    pub(super) seen: u64,
    /// Devices with an accepted attempt.
    pub(super) accepted: u64,
    /// Accepted attempts beyond the first of a device.
    pub(super) duplicates: u64,
}

impl Proof {
    /// Looks up every device of these apps.
    pub(super) fn take(site: &Site, apps: &[usize], mix: PlatformMix) -> anyhow::Result<Self> {
        let mut counted = HashMap::new();
        for service in services(mix) {
            counted.insert(*service, site.emulators.of(*service)?.counted()?);
        }
        let mut proof = Self::default();
        for SiteApp { fleet, .. } in apps.iter().map(|app| &site.apps[*app]) {
            let audience = fleet.members().filter_map(|member| Some((member, counted.get(&member.service)?)));
            for (member, file) in audience {
                let counts = file.lookup(&fleet.token(member));
                proof.add(counts.accepted, counts.rejected);
            }
        }
        Ok(proof)
    }

    /// Counts devices that are missing in the audience, were never seen, or are accepted in the ledger only.
    pub(super) fn lost(&self, audience: u64, totals: &LedgerTotals) -> u64 {
        let unseen = self.devices - self.seen;
        let unbooked = self.devices.saturating_sub(audience);
        let unaccepted = totals.accepted.saturating_sub(self.accepted);
        unseen.max(unbooked).max(unaccepted)
    }

    fn add(&mut self, accepted: u32, rejected: u32) {
        self.devices += 1;
        self.seen += u64::from(accepted + rejected > 0);
        self.accepted += u64::from(accepted > 0);
        self.duplicates += u64::from(accepted.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(devices: &[(u32, u32)]) -> Proof {
        let mut proof = Proof::default();
        devices.iter().for_each(|(accepted, rejected)| proof.add(*accepted, *rejected));
        proof
    }

    #[test]
    fn a_device_that_nobody_saw_is_lost() {
        let totals = LedgerTotals { accepted: 1, ..LedgerTotals::default() };
        assert_eq!(proof(&[(1, 0), (0, 0)]).lost(2, &totals), 1);
    }

    #[test]
    fn a_device_that_is_called_accepted_and_was_refused_is_lost() {
        let totals = LedgerTotals { accepted: 2, ..LedgerTotals::default() };
        assert_eq!(proof(&[(1, 0), (0, 1)]).lost(2, &totals), 1);
        assert_eq!(proof(&[(1, 0), (0, 1)]).lost(2, &LedgerTotals { accepted: 1, rejected: 1, ..totals }), 0);
    }

    #[test]
    fn a_device_that_is_in_no_book_is_lost_even_when_it_was_seen() {
        assert_eq!(
            proof(&[(1, 0), (1, 0)]).lost(1, &LedgerTotals { accepted: 1, ..LedgerTotals::default() }),
            1
        );
    }

    #[test]
    fn every_acceptance_beyond_the_first_is_a_duplicate() {
        assert_eq!(proof(&[(3, 1), (1, 0), (0, 2)]).duplicates, 2);
    }
}
