//! What ends with a campaign, and when it is over.

use crate::campaign::{CampaignState, ProviderLedger, Stop};
use crate::delivery::DeliveryState;
use crate::outcome::Reason;
use crate::settlement::Settlement;

/// How deliveries end that would wait.
pub type Ending = (DeliveryState, Reason);

/// Returns how deliveries of a campaign in this state end that would wait at a provider, at which it was stopped or not;
/// `None` while they may wait.
#[must_use]
pub fn ending(state: CampaignState, stop: Option<Reason>) -> Option<Ending> {
    match (state, stop) {
        (CampaignState::Canceled, _) => Some((DeliveryState::Canceled, Reason::CampaignCanceled)),
        (_, Some(reason)) => Some((DeliveryState::Failed, reason)),
        (state, None) => state.is_ended().then_some((DeliveryState::Failed, Reason::None)),
    }
}

/// Returns what is written of a settlement, and the stop that begins with it. Retries of a campaign that has ended, or ends
/// by this stop, end with it; what is awaited is past recall.
#[must_use]
pub fn decide(mut given: Settlement, ended: Option<Ending>) -> (Settlement, Option<Stop>) {
    let stop = given.stop.take().filter(|_| ended.is_none());
    let stopped = stop.as_ref().map(|stop| (DeliveryState::Failed, stop.reason));
    match ended.or(stopped) {
        Some((state, reason)) => (given.without_children(state, reason), stop),
        None => (given, stop),
    }
}

/// What is known of a campaign when it may be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Where it is.
    pub state: CampaignState,
    /// Whether its audience was begun.
    pub has_begun: bool,
    /// Whether more of its audience may come.
    pub is_expanding: bool,
    /// Whether its end was written before.
    pub has_ended: bool,
}

/// How a campaign ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Its last state.
    pub state: CampaignState,
    /// Why it was stopped, if it was.
    pub stop: Option<Stop>,
}

/// Returns how a campaign ends of which nothing is open and nothing will come; `None` while it goes on. It ends stopped when
/// a provider was stopped and nothing was accepted anywhere, for the reason of the first such provider in `books`.
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
