use stentor_core::campaign::Tally;
use stentor_core::outcome::{OutcomeScope, Reason};

use super::stub::{Stall, Stub};
use super::*;
use stentor_core::outcome::Outcome;

#[tokio::test(start_paused = true)]
async fn a_campaign_reaches_everyone_once() {
    let house = House::open(Stub::accepting(50), quick()).await;
    house.register(5_000).await;
    let id = house.send(everyone()).await;
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total(), Tally { accepted: 5_000, ..Tally::default() });
    assert!(ledger.providers.iter().all(|books| books.audience_complete));
    let counts = house.stub.counts();
    assert_eq!((counts.len(), counts.values().max()), (5_000, Some(&1)));
    assert_eq!(house.dispatcher().attempts, 5_000);
    assert_eq!(house.pipeline().stats().producers, 0, "producers end after their last chunk");
}

#[tokio::test(start_paused = true)]
async fn overlapping_campaigns_run_side_by_side() {
    let house = House::open(Stub::accepting(200), quick()).await;
    house.register(6_000).await;
    let first = house.send(everyone()).await;
    let second = house.send(everyone()).await;
    house.finished(first).await;
    house.finished(second).await;
    let seen = house.stub.seen();
    let begins = |id| seen.iter().position(|seen| seen.message == id).expect("sent");
    let ends = |id| seen.iter().rposition(|seen| seen.message == id).expect("sent");
    assert!(begins(second) < ends(first) && begins(first) < ends(second));
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_made_again_and_the_ledger_counts_both() {
    let stub = Stub::scripted(10, |seen| {
        let down = Outcome::Unavailable {
            reason: Reason::Unavailable,
            scope: OutcomeScope::Service,
            retry_after: None,
        };
        if seen.token.ends_with('7') { down } else { Outcome::Accepted }
    });
    let house = House::open(stub, quick()).await;
    house.register(1_000).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().accepted == 900).await;
    house.stub.answer(|_| Outcome::Accepted);
    let ledger = house.finished(id).await;
    assert_eq!(ledger.total().accepted, 1_000);
    assert!(ledger.providers.iter().map(|books| books.attempts).sum::<u64>() >= 1_100);
    assert!(house.stub.counts().iter().all(|(token, count)| (*count > 1) == token.ends_with('7')));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_cut_off_keeps_the_answers_it_had() {
    let config = PipelineConfig { batch_timeout_ms: 5_000, ..quick() };
    let house = House::open(Stub::accepting(10), config).await;
    house.register(24).await;
    house.stub.stall(Stall::Halves);
    let id = house.send(everyone()).await;
    let cut = house.until(id, |ledger| ledger.total().accepted > 0).await;
    assert_eq!(cut.total(), Tally { accepted: 12, queued: 12, ..Tally::default() });
    house.stub.stall(Stall::Nothing);
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].ambiguous), (24, 12));
    let counts = house.stub.counts();
    let twice = counts.values().filter(|count| **count == 2).count();
    assert_eq!((counts.len(), twice), (24, 12), "only what was not answered goes again");
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_is_settled_while_the_rest_is_waited_for() {
    let house = House::open(Stub::accepting(10), quick()).await;
    house.register(20_000).await;
    house.stub.stall(Stall::Last);
    let id = house.send(everyone()).await;
    // More than the limit of unsettled deliveries: a late delivery takes only its own place.
    let open = house.until(id, |ledger| ledger.total().accepted + ledger.total().sending == 20_000).await;
    let late = open.total().sending;
    assert!(late > 0 && late < 1_000, "{late}");
    assert!(!open.campaign.state.is_ended());
    house.stub.stall(Stall::Nothing);
    let ledger = house.finished(id).await;
    let books = &ledger.providers[0];
    assert_eq!((ledger.total().accepted, books.attempts, books.ambiguous), (20_000, 20_000, 0));
    assert!(house.stub.counts().values().all(|count| *count == 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_late_and_never_answered_is_tried_again_and_marked() {
    let config = PipelineConfig { batch_timeout_ms: 30_000, ..quick() };
    let house = House::open(Stub::accepting(10), config).await;
    house.register(1_000).await;
    house.stub.stall(Stall::Last);
    let id = house.send(everyone()).await;
    let late = house.until(id, |ledger| ledger.total().accepted > 0).await.total().sending;
    house.until(id, |ledger| ledger.total().queued == late).await;
    house.stub.stall(Stall::Nothing);
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.providers[0].ambiguous), (1_000, late));
}

#[tokio::test(start_paused = true)]
async fn a_payload_refused_for_everybody_stops_the_campaign() {
    let refuse = |_: &_| Outcome::Rejected { reason: Reason::InvalidPayload, scope: OutcomeScope::Payload };
    let house = House::open(Stub::scripted(100, refuse), quick()).await;
    house.register(20_000).await;
    let id = house.send(everyone()).await;
    let ledger = house.until(id, |ledger| ledger.campaign.ended_at.is_some()).await;
    assert_eq!(ledger.campaign.state, CampaignState::Stopped);
    let stop = ledger.campaign.stop.clone().expect("told why");
    assert_eq!(stop.reason, Reason::PayloadRefused);
    assert!(stop.detail.contains("invalid_payload"), "{}", stop.detail);
    assert!(house.stub.seen().len() <= 1_000, "{} were bothered", house.stub.seen().len());
    assert_eq!(ledger.total().open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_one_provider_refuses_reaches_everybody_at_the_other() {
    let stub = Stub::scripted(100, |seen| {
        let refused = Outcome::Rejected { reason: Reason::PayloadTooLarge, scope: OutcomeScope::Payload };
        if seen.token.starts_with('a') { refused } else { Outcome::Accepted }
    });
    let house = House::open(stub, quick()).await;
    house.put_credential_at(ProviderKind::Apns).await;
    house.register(5_000).await;
    house.register_at(ProviderKind::Apns, "a", 20_000).await;
    let id = house.send(everyone()).await;
    let ledger = house.finished(id).await;
    assert_eq!(ledger.campaign.stop, None);
    let books = |kind| ledger.providers.iter().find(|books| books.provider == kind).expect("there");
    let (fcm, apns) = (books(KIND), books(ProviderKind::Apns));
    assert_eq!((fcm.tally.accepted, &fcm.stop), (5_000, &None));
    assert_eq!(apns.stop.as_ref().map(|stop| stop.reason), Some(Reason::PayloadRefused));
    assert_eq!((apns.tally.open(), apns.tally.accepted), (0, 0));
    assert!(apns.tally.rejected <= 1_000, "{} were bothered", apns.tally.rejected);
}

#[tokio::test(start_paused = true)]
async fn a_payload_refused_by_a_few_of_many_stops_nothing() {
    let refused = || Outcome::Rejected { reason: Reason::InvalidPayload, scope: OutcomeScope::Payload };
    let stub = Stub::scripted(100, move |seen| match seen.token[1..].parse() {
        Ok(0..9) => refused(),
        _ => Outcome::Accepted,
    });
    let house = House::open(stub, PipelineConfig { chunk_max_devices: 9, ..quick() }).await;
    house.register(500).await;
    let id = house.send(everyone()).await;
    let Tally { accepted, rejected, .. } = house.finished(id).await.total();
    assert_eq!((accepted, rejected), (491, 9), "the first chunk was refused as a whole");
}

#[tokio::test(start_paused = true)]
async fn a_paused_campaign_sends_nothing_and_goes_on_where_it_was() {
    let house = House::open(Stub::accepting(500), quick()).await;
    house.register(5_000).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().accepted > 0).await;
    house.act(id, CampaignAction::Pause).await;
    let held = house.until(id, |ledger| ledger.total().sending == 0).await;
    pass(600).await;
    assert_eq!(house.ledger(id).await.total(), held.total());
    assert!(held.total().accepted < 5_000);
    house.act(id, CampaignAction::Resume).await;
    assert_eq!(house.finished(id).await.total().accepted, 5_000);
    assert_eq!(house.stub.seen().len(), 5_000);
}

#[tokio::test(start_paused = true)]
async fn a_canceled_campaign_ends_what_waits_and_settles_what_is_in_flight() {
    let house = House::open(Stub::accepting(500), quick()).await;
    house.register(5_000).await;
    let id = house.send(everyone()).await;
    house.until(id, |ledger| ledger.total().accepted > 0).await;
    house.act(id, CampaignAction::Cancel).await;
    let ledger = house.until(id, |ledger| ledger.campaign.ended_at.is_some()).await;
    let Tally { accepted, canceled, .. } = ledger.total();
    assert_eq!(accepted as usize, house.stub.seen().len());
    assert!(canceled > 0 && accepted + canceled == ledger.audience());
    pass(60).await;
    assert_eq!(house.stub.seen().len(), accepted as usize);
}

#[tokio::test(start_paused = true)]
async fn what_outlives_its_ttl_behind_a_stalled_service_is_never_sent() {
    let house = House::open(Stub::accepting(10), quick()).await;
    house.register(3_000).await;
    house.stub.stall(Stall::Everything);
    let id = house.send(lasting(60, everyone())).await;
    pass(90).await;
    let stalled = house.stub.seen().len();
    house.stub.stall(Stall::Nothing);
    let Tally { accepted, expired, .. } = house.finished(id).await.total();
    assert!(stalled > 0 && stalled < 3_000, "{stalled}");
    assert_eq!((accepted as usize, expired as usize), (stalled, 3_000 - stalled));
    assert_eq!(house.stub.seen().len(), stalled);
}

#[tokio::test(start_paused = true)]
async fn a_newer_message_replaces_queued_ones_with_its_key_and_no_others() {
    let house = House::open(Stub::accepting(10), quick()).await;
    house.register(3_000).await;
    house.stub.stall(Stall::Everything);
    let old = house.send(collapsing("score", everyone())).await;
    let other = house.send(everyone()).await;
    pass(5).await;
    let new = house.send(collapsing("score", everyone())).await;
    pass(5).await;
    let sent_before = house.stub.seen().iter().filter(|seen| seen.message == old).count() as u64;
    house.stub.stall(Stall::Nothing);
    let total = house.finished(old).await.total();
    assert!(total.collapsed > 0);
    assert_eq!((total.accepted, total.collapsed), (sent_before, 3_000 - sent_before));
    assert_eq!(house.finished(new).await.total().accepted, 3_000);
    assert_eq!(house.finished(other).await.total().accepted, 3_000);
}

#[tokio::test(start_paused = true)]
async fn a_dead_token_is_retired_and_an_invalid_one_is_not() {
    let stub = Stub::scripted(10, |seen| match seen.token.as_str() {
        "t1" => Outcome::Unregistered { reason: Reason::Unregistered, since: None },
        "t2" => Outcome::Rejected { reason: Reason::InvalidToken, scope: OutcomeScope::Device },
        _ => Outcome::Accepted,
    });
    let house = House::open(stub, quick()).await;
    let devices = house.register(3).await;
    pass(1).await;
    let id = house.send(everyone()).await;
    let ledger = house.finished(id).await;
    assert_eq!((ledger.total().accepted, ledger.total().rejected), (1, 2));
    let retired =
        |device| async move { house.store.device(APP, device).await.expect("there").retired.is_some() };
    assert!(retired.clone()(devices[1]).await);
    assert!(!retired(devices[2]).await);
}

#[tokio::test(start_paused = true)]
async fn a_campaign_resumed_while_its_ticket_is_taken_off_the_queue_goes_on_at_once() {
    let config = PipelineConfig { republish_interval_ms: 86_400_000, ..quick() };
    let house = House::open(Stub::accepting(10), config).await;
    let device = house.register(1).await[0];
    let (id, tickets) = (house.accept(spec(Target::Device(device))).await, house.begin().await);
    house.act(id, CampaignAction::Pause).await;
    house.queue.hang_at(Some("ack"));
    house.pipeline().published(tickets);
    while house.queue.count("ack") == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    house.act(id, CampaignAction::Resume).await;
    house.queue.hang_at(None);
    let began = Instant::now();
    house.finished(id).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
