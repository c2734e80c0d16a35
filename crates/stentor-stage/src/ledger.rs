//! The ledger of a campaign as the REST API returns it.

use crate::client::{ApiClient, segment};
use serde::Deserialize;
use serde_json::Value;

/// A snapshot of a campaign's books.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CampaignLedger {
    /// The campaign.
    pub campaign: String,
    /// The message that started the campaign.
    pub message: String,
    /// Its state.
    pub state: String,
    /// The instant at which the last delivery ended.
    pub ended_at: Option<String>,
    /// The reason of its stop, if it was stopped.
    pub stop: Option<LedgerStop>,
    /// The number of devices in its audience.
    pub audience: u64,
    /// True if every device of the audience is in the books.
    pub audience_complete: bool,
    /// True if the books balance, as the server reports.
    pub balanced: bool,
    /// The number of deliveries in each state.
    pub totals: LedgerTotals,
    /// The number of attempts at push services.
    pub attempts: u64,
    /// The number of deliveries that may have arrived more than once.
    pub ambiguous: u64,
    /// The maximum number of duplicates.
    pub duplicate_bound: u64,
    /// The books of each provider.
    pub providers: Vec<ProviderBooks>,
    /// The reasons why it is waiting, as a whole or at some providers.
    pub waits: Vec<LedgerWait>,
}

/// A reason why a campaign is waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LedgerWait {
    /// The reason, as a code.
    pub reason: String,
    /// The provider that waits, if not the campaign does.
    pub provider: Option<String>,
    /// The server's record of it.
    pub detail: String,
    /// The instant at which it continues, if known.
    pub until: Option<String>,
}

/// The reason why a campaign was stopped early, at a provider or as a whole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LedgerStop {
    /// The reason, as a code.
    pub reason: String,
    /// The error text of the push service.
    pub detail: String,
}

/// The number of deliveries in each state.
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
    /// Deliveries that became too late to be sent.
    pub expired: u64,
    /// Replaced by a newer message.
    pub collapsed: u64,
    /// Canceled on request.
    pub canceled: u64,
    /// Deliveries given up.
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
    /// The number of devices in the audience.
    pub audience: u64,
    /// The number of deliveries in each state.
    pub totals: LedgerTotals,
    /// The number of attempts at the push service.
    pub attempts: u64,
    /// The number of deliveries that may have arrived more than once.
    pub ambiguous: u64,
    /// The reason of its stop, if it was stopped.
    pub stop: Option<LedgerStop>,
    /// The number of deliveries by state and reason.
    pub reasons: Vec<LedgerReason>,
}

/// The number of deliveries in one state for one reason.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LedgerReason {
    /// Its state.
    pub state: String,
    /// The reason, as a code.
    pub reason: String,
    /// The number of deliveries.
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
    /// Fetches the ledger of a campaign or message. Returns the response as JSON and its parsed form.
    pub async fn fetch(client: &ApiClient, campaign: &str) -> anyhow::Result<(Value, Self)> {
        let said = client.get(&format!("/v1/campaigns/{}", segment(campaign))).await?;
        let ledger = Self::deserialize(&said)?;
        Ok((said, ledger))
    }

    /// Returns true if the server reports that the last delivery has ended. The books show if that is consistent.
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

    /// Returns the reasons why it is waiting, a line for each; empty while it proceeds.
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
