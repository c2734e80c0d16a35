//! The ledger of a campaign as the REST API tells it.

use crate::client::{ApiClient, segment};
use serde::Deserialize;
use serde_json::Value;

/// A snapshot of a campaign's books.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CampaignLedger {
    /// The campaign.
    pub campaign: String,
    /// The message that asked for it.
    pub message: String,
    /// Its state.
    pub state: String,
    /// When the last delivery ended.
    pub ended_at: Option<String>,
    /// Why it was stopped, if it was.
    pub stop: Option<LedgerStop>,
    /// How many devices it is for.
    pub audience: u64,
    /// Whether every device of the audience is in the books.
    pub audience_complete: bool,
    /// Whether the books balance, as the server says.
    pub balanced: bool,
    /// How many deliveries are in each state.
    pub totals: LedgerTotals,
    /// How often a push service was asked.
    pub attempts: u64,
    /// How many deliveries may have arrived more than once.
    pub ambiguous: u64,
    /// How many duplicates there may be.
    pub duplicate_bound: u64,
    /// The books of each provider.
    pub providers: Vec<ProviderBooks>,
    /// Why it stands still, as a whole or at some providers.
    pub waits: Vec<LedgerWait>,
}

/// Why a campaign stands still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LedgerWait {
    /// The reason, as a code.
    pub reason: String,
    /// The provider that waits, if not the campaign does.
    pub provider: Option<String>,
    /// The server's record of it.
    pub detail: String,
    /// When it goes on, if that is known.
    pub until: Option<String>,
}

/// Why a campaign was stopped early, at a provider or as a whole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LedgerStop {
    /// The reason, as a code.
    pub reason: String,
    /// What the push service said.
    pub detail: String,
}

/// How many deliveries are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LedgerTotals {
    /// Deliveries that wait.
    pub queued: u64,
    /// On their way.
    pub sending: u64,
    /// Accepted by the push service.
    pub accepted: u64,
    /// Refused by the push service for good.
    pub rejected: u64,
    /// Too late to be sent.
    pub expired: u64,
    /// Replaced by a newer message.
    pub collapsed: u64,
    /// Canceled on request.
    pub canceled: u64,
    /// Given up.
    pub failed: u64,
    /// Of the accepted ones, those that the devices themselves have confirmed.
    pub delivered: u64,
}

/// The books of one provider.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProviderBooks {
    /// The provider.
    pub provider: String,
    /// How many devices it is for.
    pub audience: u64,
    /// How many deliveries are in each state.
    pub totals: LedgerTotals,
    /// How often a push service was asked.
    pub attempts: u64,
    /// How many deliveries may have arrived more than once.
    pub ambiguous: u64,
    /// Why it was stopped, if it was.
    pub stop: Option<LedgerStop>,
    /// How many deliveries are in a state for a reason.
    pub reasons: Vec<LedgerReason>,
}

/// How many deliveries are in a state for a reason.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LedgerReason {
    /// Its state.
    pub state: String,
    /// The reason, as a code.
    pub reason: String,
    /// How many deliveries.
    pub count: u64,
}

impl LedgerTotals {
    /// Adds the states that are final.
    pub const fn ended(&self) -> u64 {
        self.accepted + self.rejected + self.expired + self.collapsed + self.canceled + self.failed
    }

    /// Adds the states that are not final.
    pub const fn open(&self) -> u64 {
        self.queued + self.sending
    }
}

impl CampaignLedger {
    /// Asks for the ledger of a campaign or message; returns what the server said beside what it means.
    pub async fn fetch(client: &ApiClient, campaign: &str) -> anyhow::Result<(Value, Self)> {
        let said = client.get(&format!("/v1/campaigns/{}", segment(campaign))).await?;
        let ledger = Self::deserialize(&said)?;
        Ok((said, ledger))
    }

    /// Returns whether the last delivery has ended, as the server says; whether that can be true is for the books.
    pub const fn is_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Adds the books up, without trusting the server's own sum.
    pub fn sums_up(&self) -> bool {
        let sums_up = |audience: u64, totals: &LedgerTotals| audience == totals.ended() + totals.open();
        let add = |field: fn(&LedgerTotals) -> u64| {
            self.providers.iter().map(|books| field(&books.totals)).sum::<u64>()
        };
        sums_up(self.audience, &self.totals)
            && self.providers.iter().all(|books| sums_up(books.audience, &books.totals))
            && add(|totals| totals.accepted) == self.totals.accepted
            && add(|totals| totals.rejected) == self.totals.rejected
            && add(LedgerTotals::ended) == self.totals.ended()
            && add(LedgerTotals::open) == self.totals.open()
    }

    /// Returns why it stands still, a line for each cause; nothing while it moves.
    pub fn waits_text(&self) -> String {
        let line = |wait: &LedgerWait| {
            let who = wait
                .provider
                .as_deref()
                .map_or("it stands still".to_owned(), |one| format!("{one} stands still"));
            let until = wait.until.as_deref().map(|until| format!(", until {until}")).unwrap_or_default();
            format!("{who} ({}): {}{until}", wait.reason, wait.detail)
        };
        self.waits.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Names the state, and why it was stopped if it was.
    pub fn state_text(&self) -> String {
        match &self.stop {
            Some(stop) => format!("{} ({}: {})", self.state, stop.reason, stop.detail),
            None => self.state.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
