//! The end of a campaign and of its deliveries.

use crate::campaign::{CampaignState, ProviderLedger, Stop};
use crate::delivery::DeliveryState;
use crate::outcome::Reason;
use crate::settlement::Settlement;

/// The final state and reason of deliveries that would otherwise wait.
pub type Ending = (DeliveryState, Reason);

/// Returns the end of waiting deliveries, from the state of their campaign and its stop at the provider. Returns `None` while they may
/// wait.
#[must_use]
pub fn ending(state: CampaignState, stop: Option<Reason>) -> Option<Ending> {
    match (state, stop) {
        (CampaignState::Canceled, _) => Some((DeliveryState::Canceled, Reason::CampaignCanceled)),
        (_, Some(reason)) => Some((DeliveryState::Failed, reason)),
        (state, None) => state.is_ended().then_some((DeliveryState::Failed, Reason::None)),
    }
}

/// Returns the settlement to be written, and the stop that begins with it. Retries of a campaign that has ended, or that ends by this stop,
/// end with it; awaited deliveries cannot be recalled.
#[must_use]
pub fn decide(mut given: Settlement, ended: Option<Ending>) -> (Settlement, Option<Stop>) {
    let stop = given.stop.take().filter(|_| ended.is_none());
    let stopped = stop.as_ref().map(|stop| (DeliveryState::Failed, stop.reason));
    match ended.or(stopped) {
        Some((state, reason)) => (given.without_children(state, reason), stop),
        None => (given, stop),
    }
}

/// The facts that decide whether a campaign is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: CampaignState,
    /// True if the expansion of its audience has begun.
    pub has_begun: bool,
    /// True if its audience may still grow.
    pub is_expanding: bool,
    /// True if its end was written before.
    pub has_ended: bool,
}

/// The end of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Its final state.
    pub state: CampaignState,
    /// Cause of the stop, if it was stopped.
    pub stop: Option<Stop>,
}

/// Returns the end of a campaign without open or future deliveries; `None` while it continues. The campaign ends stopped if a provider was
/// stopped and nothing was accepted anywhere, for the reason of the first such provider in `books`.
#[must_use]
pub fn finish<'a>(
    standing: Standing,
    books: impl Iterator<Item = &'a ProviderLedger> + Clone,
) -> Option<Finish> {
    let is_open = books.clone().any(|one| one.tally.open() > 0);
    if is_open || standing.is_expanding || standing.has_ended {
        return None;
    }
    match standing.state {
        CampaignState::Running | CampaignState::Paused if standing.has_begun => {
            let stop = books.clone().find_map(|one| one.stop.clone());
            let stop = stop.filter(|_| books.clone().all(|one| one.tally.accepted == 0));
            let state = if stop.is_some() { CampaignState::Stopped } else { CampaignState::Finished };
            Some(Finish { state, stop })
        }
        state if state.is_ended() => Some(Finish { state, stop: None }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Tally;
    use crate::device::ProviderKind;
    use crate::ledger::Books;

    const RUNNING: Standing =
        Standing { state: CampaignState::Running, has_begun: true, is_expanding: false, has_ended: false };

    fn books(provider: ProviderKind, tally: Tally, stop: Option<Reason>) -> ProviderLedger {
        let stop = stop.map(|reason| Stop { reason, detail: String::new() });
        ProviderLedger { tally, stop, ..Books::new(provider).ledger().clone() }
    }

    fn state(standing: Standing, books: &[ProviderLedger]) -> Option<CampaignState> {
        finish(standing, books.iter()).map(|finish| finish.state)
    }

    #[test]
    fn a_cancel_goes_before_a_stop_and_both_end_what_waits() {
        let refused = Some(Reason::PayloadRefused);
        let canceled = Some((DeliveryState::Canceled, Reason::CampaignCanceled));
        assert_eq!(ending(CampaignState::Canceled, refused), canceled);
        assert_eq!(
            ending(CampaignState::Running, refused),
            Some((DeliveryState::Failed, Reason::PayloadRefused))
        );
        assert_eq!(ending(CampaignState::Finished, None), Some((DeliveryState::Failed, Reason::None)));
        for waits in [CampaignState::Scheduled, CampaignState::Running, CampaignState::Paused] {
            assert_eq!(ending(waits, None), None);
        }
    }

    #[test]
    fn a_campaign_is_over_when_nothing_is_open_and_nothing_will_come() {
        let done = [books(ProviderKind::Fcm, Tally { accepted: 2, ..Tally::default() }, None)];
        assert_eq!(state(RUNNING, &done), Some(CampaignState::Finished));
        assert_eq!(state(Standing { is_expanding: true, ..RUNNING }, &done), None);
        assert_eq!(state(Standing { has_begun: false, ..RUNNING }, &[]), None, "it waits for its due time");
        assert_eq!(state(Standing { has_ended: true, ..RUNNING }, &done), None, "its end is written once");
        let open = [books(ProviderKind::Fcm, Tally { sending: 1, ..Tally::default() }, None)];
        assert_eq!(state(RUNNING, &open), None);
        let canceled = Standing { state: CampaignState::Canceled, ..RUNNING };
        assert_eq!(state(canceled, &done), Some(CampaignState::Canceled));
        let scheduled = Standing { state: CampaignState::Scheduled, ..RUNNING };
        assert_eq!(state(scheduled, &done), None);
    }

    #[test]
    fn a_stop_at_one_provider_stops_the_whole_only_when_nobody_got_it() {
        let none = Tally { failed: 2, ..Tally::default() };
        let some = Tally { accepted: 1, ..Tally::default() };
        let refused = Some(Reason::PayloadRefused);
        let stopped = [books(ProviderKind::Fcm, none, refused), books(ProviderKind::Apns, none, None)];
        assert_eq!(state(RUNNING, &stopped), Some(CampaignState::Stopped));
        let elsewhere = [books(ProviderKind::Fcm, none, refused), books(ProviderKind::Apns, some, None)];
        assert_eq!(state(RUNNING, &elsewhere), Some(CampaignState::Finished));
    }
}
