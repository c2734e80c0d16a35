//! The ledger of a campaign for people: a column for each provider's numbers, reasons, and whether the books balance.

use crate::output::{ledger as table, thousands};
use stentor_stage::ledger::LedgerStop;
pub use stentor_stage::ledger::{CampaignLedger, LedgerTotals, LedgerWait, ProviderBooks};

/// Lays the books out as a table, a row per provider.
pub fn describe(ledger: &CampaignLedger) -> String {
    let head = format!("campaign {}  {}", ledger.campaign, ledger.state_text());
    let verdict = if ledger.sums_up() { "the books balance" } else { "THE BOOKS DO NOT BALANCE" };
    let rows = ledger
        .providers
        .iter()
        .map(|books| row(&books.provider, books.audience, &books.totals, books.attempts, books.ambiguous));
    let all = row("all", ledger.audience, &ledger.totals, ledger.attempts, ledger.ambiguous);
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
    let reasons = describe_reasons(ledger);
    let expanding = if ledger.audience_complete { "" } else { " (the audience is still being expanded)" };
    let stops = describe_stops(ledger);
    let waits = ledger.waits_text();
    let waits = if waits.is_empty() { waits } else { format!("\n{waits}\n") };
    format!("{head}\n\n{books}\n{reasons}{stops}{waits}\n{verdict}{expanding}")
}

/// Returns the stopped providers and the reasons; omits the reason of the campaign as a whole.
fn describe_stops(ledger: &CampaignLedger) -> String {
    let stopped = ledger.providers.iter().filter(|_| ledger.stop.is_none());
    let lines = stopped.filter_map(|books| {
        let LedgerStop { reason, detail } = books.stop.as_ref()?;
        // A canceled campaign is not a stopped one: its detail shows how far its audience was expanded.
        let state = if ledger.state == "canceled" { "canceled" } else { "stopped" };
        Some(format!("\n{} was {state} ({reason}): {detail}\n", books.provider))
    });
    lines.collect()
}

fn describe_reasons(ledger: &CampaignLedger) -> String {
    let lines = ledger.providers.iter().flat_map(|books| {
        let reported = books.reasons.iter().filter(|reason| reason.reason != "none" && reason.count > 0);
        reported.map(|reason| {
            format!("  {} {} {}: {}", books.provider, reason.state, reason.reason, thousands(reason.count))
        })
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { String::new() } else { format!("\nreasons\n{}\n", lines.join("\n")) }
}

fn row(name: &str, audience: u64, totals: &LedgerTotals, attempts: u64, ambiguous: u64) -> [String; 12] {
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
mod tests {
    use super::*;

    #[test]
    fn a_stopped_provider_is_told_with_its_reason() {
        let books = ProviderBooks { provider: "fcm".to_owned(), ..ProviderBooks::default() };
        let mut ledger = CampaignLedger { providers: vec![books], ..CampaignLedger::default() };
        assert!(!describe(&ledger).contains("was stopped"));
        ledger.providers[0].stop =
            Some(LedgerStop { reason: "payload_refused".to_owned(), detail: "too big".to_owned() });
        let text = describe(&ledger);
        assert!(text.contains("fcm was stopped (payload_refused): too big"), "{text}");
    }

    #[test]
    fn a_campaign_that_stands_still_says_why_and_a_canceled_one_is_not_called_stopped() {
        let wait = LedgerWait {
            reason: "throttled".to_owned(),
            provider: Some("fcm".to_owned()),
            detail: "the push service asks to slow down".to_owned(),
            until: Some("2026-11-28T00:00:00.000Z".to_owned()),
        };
        let books = ProviderBooks {
            provider: "fcm".to_owned(),
            stop: Some(LedgerStop {
                reason: "campaign_canceled".to_owned(),
                detail: "canceled early".to_owned(),
            }),
            ..ProviderBooks::default()
        };
        let ledger = CampaignLedger {
            state: "canceled".to_owned(),
            providers: vec![books],
            waits: vec![wait],
            ..CampaignLedger::default()
        };
        let text = describe(&ledger);
        let expected = "fcm stands still (throttled): the push service asks to slow down, until 2026-11-28T00:00:00.000Z";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("fcm was canceled (campaign_canceled): canceled early"), "{text}");
    }
}
