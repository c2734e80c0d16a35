//! The verdict on the proof: a function of the findings, with a sentence for each violation.

use super::comparison::Comparison;
use crate::ledger::LedgerTotals;

/// The findings, as plain values.
#[derive(Clone, Debug, Default)]
pub(super) struct ProofFacts {
    /// The devices that were imported.
    pub devices: u64,
    /// The audience of the campaign.
    pub audience: u64,
    /// The books at the end.
    pub totals: LedgerTotals,
    /// The state of the campaign.
    pub state: String,
    /// True if the books balanced at every reading.
    pub balanced: bool,
    /// Deliveries without a final state.
    pub stuck: u64,
    /// Devices that are lost.
    pub lost: u64,
    /// Contradictions of other kinds.
    pub disagreeing: u64,
    /// Pushes accepted beyond the first of each token.
    pub duplicates: u64,
    /// Those of them that follow an attempt which the ledger calls unanswered.
    pub unanswered_duplicates: u64,
    /// Devices with duplicates that the ledger does not mark.
    pub unmarked_duplicates: u64,
    /// The bound that the ledger states for crashes of the server.
    pub duplicate_bound: u64,
    /// The most deliveries that one crash may leave in doubt.
    pub max_unsettled: u64,
    /// Attempts in the books.
    pub attempts: u64,
    /// Attempts that the emulators counted.
    pub emulator_attempts: u64,
    /// Kills of the server, planned and done.
    pub kills: [u32; 2],
    /// Kills of emulators, planned and done.
    pub emulator_kills: [u32; 2],
    /// Troubles below the server, planned and done.
    pub troubles: [u32; 2],
    /// True if push services may have refused attempts without counting them, as they do with those of a wrong date.
    pub has_wrong_dates: bool,
    /// Over our own gateway: the deliveries that the devices have confirmed, which must be all.
    pub delivered: Option<u64>,
    /// Over our own gateway: devices that had the message at a kill and whose receipt may not have been on disk.
    pub unconfirmed_at_kills: Option<u64>,
    /// Violations in the responses that the server gave in its trouble.
    pub acceptance: Vec<String>,
}

impl ProofFacts {
    /// Copies the results of the comparison.
    pub(super) fn compare(&mut self, comparison: &Comparison) {
        self.lost = comparison.lost;
        self.disagreeing = comparison.disagreeing;
        self.duplicates = comparison.duplicates;
        self.unanswered_duplicates = comparison.unanswered_duplicates;
        self.unmarked_duplicates = comparison.unmarked_duplicates;
        self.emulator_attempts = comparison.counted.values().map(|counted| counted.attempts).sum();
    }

    /// Returns the maximum number of duplicates: the ledger's bound, and the unanswered requests of killed emulators. Our own devices
    /// receive messages again that the ledger did not know to be delivered.
    pub(super) fn allowed_duplicates(&self) -> u64 {
        if let Some(unconfirmed) = self.unconfirmed_at_kills {
            return unconfirmed;
        }
        let killed = self.emulator_kills[1] > 0;
        self.duplicate_bound + if killed { self.unanswered_duplicates } else { 0 }
    }

    /// Returns the violations; none if the proof holds.
    pub(super) fn broken(&self) -> Vec<String> {
        let checks = self.of_the_books().into_iter().chain(self.of_the_tokens()).chain(self.of_the_kills());
        let broken = checks.filter(|(is_broken, _)| *is_broken).map(|(_, sentence)| sentence);
        broken.chain(self.acceptance.iter().cloned()).collect()
    }

    fn of_the_books(&self) -> Vec<(bool, String)> {
        let LedgerTotals { accepted, rejected, expired, collapsed, canceled, failed, .. } = self.totals;
        let astray = |count: u64, word: &str| (count > 0, format!("{count} deliveries ended {word}"));
        vec![
            (!self.balanced, "the books do not balance".to_owned()),
            (self.state != "finished", format!("the campaign is {}", self.state)),
            (self.audience != self.devices, format!("the audience is {} devices", self.audience)),
            (self.stuck > 0, format!("{} deliveries are stuck", self.stuck)),
            (accepted == 0, "nothing was accepted".to_owned()),
            (
                accepted + rejected != self.devices,
                format!("{accepted} accepted and {rejected} rejected are not {} devices", self.devices),
            ),
            (
                self.delivered.is_some_and(|delivered| delivered != self.devices),
                format!("{} deliveries are confirmed, not all", self.delivered.unwrap_or_default()),
            ),
            astray(expired, "expired"),
            astray(collapsed, "collapsed"),
            astray(canceled, "canceled"),
            astray(failed, "failed"),
        ]
    }

    fn of_the_tokens(&self) -> Vec<(bool, String)> {
        vec![
            (self.lost > 0, format!("{} devices are lost", self.lost)),
            (
                self.disagreeing > 0,
                format!("{} contradictions between ledger and emulators", self.disagreeing),
            ),
            (
                self.unmarked_duplicates > 0,
                format!("{} devices with duplicates are not marked", self.unmarked_duplicates),
            ),
            (
                self.duplicates > self.allowed_duplicates(),
                format!("{} duplicates, the bound is {}", self.duplicates, self.allowed_duplicates()),
            ),
        ]
    }

    fn of_the_kills(&self) -> Vec<(bool, String)> {
        let most = u64::from(self.kills[1]) * self.max_unsettled;
        let undisturbed = self.kills[1] + self.emulator_kills[1] == 0;
        vec![
            (
                [self.kills, self.emulator_kills, self.troubles]
                    .iter()
                    .any(|[requested, done]| requested != done),
                "the campaign ended before all kills had happened".to_owned(),
            ),
            (
                self.duplicate_bound > most,
                format!(
                    "the ledger's bound is {}, but the number of kills allows {most}",
                    self.duplicate_bound
                ),
            ),
            (
                undisturbed && !self.has_wrong_dates && self.attempts != self.emulator_attempts,
                format!(
                    "{} attempts in the ledger, {} at the emulators",
                    self.attempts, self.emulator_attempts
                ),
            ),
        ]
    }
}

#[cfg(test)]
mod tests;
