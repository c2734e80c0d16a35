//! The ledger of a campaign as the REST API tells it.

use crate::client::{Client, segment};
use crate::output::{ledger as table, thousands};
use serde::Deserialize;
use serde_json::Value;

/// A snapshot of a campaign's books.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ledger {
    pub(crate) campaign: String,
    pub(crate) message: String,
    pub(crate) state: String,
    pub(crate) ended_at: Option<String>,
    pub(crate) stop: Option<Stop>,
    pub(crate) audience: u64,
    pub(crate) audience_complete: bool,
    pub(crate) balanced: bool,
    pub(crate) totals: Totals,
    pub(crate) attempts: u64,
    pub(crate) ambiguous: u64,
    pub(crate) duplicate_bound: u64,
    pub(crate) providers: Vec<ProviderBooks>,
}

/// Why a campaign was stopped early, at a provider or as a whole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stop {
    pub(crate) reason: String,
    pub(crate) detail: String,
}

/// How many deliveries are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Totals {
    pub(crate) queued: u64,
    pub(crate) sending: u64,
    pub(crate) accepted: u64,
    pub(crate) rejected: u64,
    pub(crate) expired: u64,
    pub(crate) collapsed: u64,
    pub(crate) canceled: u64,
    pub(crate) failed: u64,
}

/// The books of one provider.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ProviderBooks {
    pub(crate) provider: String,
    pub(crate) audience: u64,
    pub(crate) totals: Totals,
    pub(crate) attempts: u64,
    pub(crate) ambiguous: u64,
    pub(crate) stop: Option<Stop>,
    pub(crate) reasons: Vec<ReasonCount>,
}

/// How many deliveries are in a state for a reason.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReasonCount {
    pub(crate) state: String,
    pub(crate) reason: String,
    pub(crate) count: u64,
}

impl Totals {
    /// Adds the states that are final.
    pub(crate) const fn ended(&self) -> u64 {
        self.accepted + self.rejected + self.expired + self.collapsed + self.canceled + self.failed
    }

    /// Adds the states that are not final.
    pub(crate) const fn open(&self) -> u64 {
        self.queued + self.sending
    }
}

impl Ledger {
    /// Asks for the ledger of a campaign or message; returns what the server said beside what it means.
    pub(crate) async fn fetch(client: &Client, campaign: &str) -> anyhow::Result<(Value, Self)> {
        let said = client.get(&format!("/v1/campaigns/{}", segment(campaign))).await?;
        let ledger = Self::deserialize(&said)?;
        Ok((said, ledger))
    }

    /// Returns whether the last delivery has ended, as the server says; whether that can be true is for the books.
    pub(crate) const fn is_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Adds the books up, without trusting the server's own sum.
    pub(crate) fn sums_up(&self) -> bool {
        let sums_up = |audience: u64, totals: &Totals| audience == totals.ended() + totals.open();
        let add =
            |field: fn(&Totals) -> u64| self.providers.iter().map(|books| field(&books.totals)).sum::<u64>();
        sums_up(self.audience, &self.totals)
            && self.providers.iter().all(|books| sums_up(books.audience, &books.totals))
            && add(|totals| totals.accepted) == self.totals.accepted
            && add(|totals| totals.rejected) == self.totals.rejected
            && add(Totals::ended) == self.totals.ended()
            && add(Totals::open) == self.totals.open()
    }

    /// Lays the books out as a table, a column per provider.
    pub(crate) fn describe(&self) -> String {
        let head = format!("campaign {}  {}", self.campaign, self.state_text());
        let verdict = if self.sums_up() { "the books balance" } else { "THE BOOKS DO NOT BALANCE" };
        let rows = self.providers.iter().map(|books| {
            row(&books.provider, books.audience, &books.totals, books.attempts, books.ambiguous)
        });
        let all = row("all", self.audience, &self.totals, self.attempts, self.ambiguous);
        let header = [
            "provider",
            "audience",
            "queued",
            "sending",
            "accepted",
            "rejected",
            "expired",
            "collapsed",
            "canceled",
            "failed",
            "attempts",
            "ambiguous",
        ];
        let books = table(header, rows.chain([all]));
        let reasons = self.describe_reasons();
        let expanding = if self.audience_complete { "" } else { " (the audience is still being expanded)" };
        let stops = self.describe_stops();
        format!("{head}\n\n{books}\n{reasons}{stops}\n{verdict}{expanding}")
    }

    /// Returns which providers were stopped and why; what the campaign as a whole says already is not repeated.
    fn describe_stops(&self) -> String {
        let stopped = self.providers.iter().filter(|_| self.stop.is_none());
        let lines = stopped.filter_map(|books| {
            let Stop { reason, detail } = books.stop.as_ref()?;
            Some(format!("\n{} was stopped ({reason}): {detail}\n", books.provider))
        });
        lines.collect()
    }

    /// Names the state, and why it was stopped if it was.
    pub(crate) fn state_text(&self) -> String {
        match &self.stop {
            Some(stop) => format!("{} ({}: {})", self.state, stop.reason, stop.detail),
            None => self.state.clone(),
        }
    }

    fn describe_reasons(&self) -> String {
        let lines = self.providers.iter().flat_map(|books| {
            let told = books.reasons.iter().filter(|reason| reason.reason != "none" && reason.count > 0);
            told.map(|reason| {
                format!(
                    "  {} {} {}: {}",
                    books.provider,
                    reason.state,
                    reason.reason,
                    thousands(reason.count)
                )
            })
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { String::new() } else { format!("\nreasons\n{}\n", lines.join("\n")) }
    }
}

fn row(name: &str, audience: u64, totals: &Totals, attempts: u64, ambiguous: u64) -> [String; 12] {
    let numbers = [
        audience,
        totals.queued,
        totals.sending,
        totals.accepted,
        totals.rejected,
        totals.expired,
        totals.collapsed,
        totals.canceled,
        totals.failed,
        attempts,
        ambiguous,
    ];
    let mut row: [String; 12] = Default::default();
    row[0] = name.to_owned();
    for (cell, number) in row[1..].iter_mut().zip(numbers) {
        *cell = thousands(number);
    }
    row
}

#[cfg(test)]
mod tests;
