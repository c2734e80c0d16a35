use super::{CampaignLedger, LedgerTotals, ProviderBooks};

fn balanced() -> CampaignLedger {
    let totals = LedgerTotals { queued: 1, accepted: 5, rejected: 2, ..LedgerTotals::default() };
    let books = ProviderBooks { provider: "fcm".to_owned(), audience: 8, totals, ..ProviderBooks::default() };
    CampaignLedger {
        audience: 8,
        audience_complete: true,
        totals,
        providers: vec![books],
        ..CampaignLedger::default()
    }
}

#[test]
fn books_that_add_up_balance() {
    assert!(balanced().sums_up());
}

#[test]
fn a_missing_device_is_noticed_whatever_the_server_says() {
    let mut ledger = CampaignLedger { balanced: true, ..balanced() };
    ledger.totals.accepted -= 1;
    assert!(!ledger.sums_up());
}

#[test]
fn providers_that_contradict_the_sum_are_noticed() {
    let mut ledger = balanced();
    ledger.providers[0].totals.accepted -= 1;
    ledger.providers[0].totals.rejected += 1;
    assert!(!ledger.sums_up());
}

#[test]
fn a_campaign_has_ended_when_the_server_says_when() {
    let canceled = CampaignLedger { state: "canceled".to_owned(), ..balanced() };
    assert!(!canceled.is_ended(), "what is in flight goes on");
    assert!(CampaignLedger { ended_at: Some("2030-01-01T00:00:00Z".to_owned()), ..canceled }.is_ended());
}

#[test]
fn fields_that_are_new_to_us_do_no_harm() {
    let ledger: CampaignLedger =
        serde_json::from_str(r#"{"audience": 3, "totals": {"accepted": 3, "dreamt": 1}, "x": []}"#).unwrap();
    assert_eq!((ledger.audience, ledger.totals.accepted), (3, 3));
}
