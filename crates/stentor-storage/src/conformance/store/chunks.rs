//! Leasing, settling, giving back.

use crate::conformance::PlainChanges;
use stentor_core::campaign::{CampaignAction, CampaignState, Tally};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::id::ChunkId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    Lease, LeaseReply, QueuedFilter, Recovery, SendDecision, SettleReply, Store,
};
use stentor_core::settlement::Settlement;
use stentor_core::target::Target;

use crate::conformance::scene::{
    Draft, INSTANCE, Scene, accept_all, at, await_some, awaited_chunk, chunks, lease_at, lease_of, record,
    registration, retry, settle_all,
};

const START: ChunkId = ChunkId::from_raw(0);

pub async fn a_leased_chunk_has_all_that_is_needed_to_send_it(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let one = scene.register(registration(stentor_core::device::ProviderKind::Fcm, "address-one")).await;
    let two = scene.register(registration(stentor_core::device::ProviderKind::Fcm, "address-two")).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    assert_eq!((leased.id, leased.provider), (tickets[0].chunk, tickets[0].lane.provider));
    assert_eq!(*leased.message, store.message(scene.app, message).await.expect("found"));
    assert_eq!((leased.attempt, leased.ambiguous), (1, false));
    assert_eq!(leased.devices, [one, two]);
    assert_eq!(leased.decisions, [SendDecision::Send, SendDecision::Send]);
    assert_eq!(leased.tokens.iter().collect::<Vec<_>>(), ["address-one", "address-two"]);
}

pub async fn a_chunk_is_leased_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let chunk = tickets[0].chunk;
    let replies = scene.ask(&[chunk, chunk], at(1)).await;
    assert!(matches!(replies.as_slice(), [LeaseReply::Leased(_), LeaseReply::Void]), "{replies:?}");
    let other = store.lease(&[chunk], lease_of(8, at(1))).await.expect("asked");
    assert!(matches!(other[0], LeaseReply::Void));
}

pub async fn a_chunk_asked_for_at_the_same_time_is_leased_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let wanted = chunks(&tickets);
    let ask = |instance| store.lease(&wanted, lease_of(instance, at(1)));
    let (a, b, c, d) = tokio::join!(ask(1), ask(2), ask(3), ask(4));
    let replies = [a, b, c, d].map(|reply| reply.expect("asked").remove(0));
    let leased = replies.iter().filter(|reply| matches!(reply, LeaseReply::Leased(_))).count();
    assert_eq!(leased, 1);
    assert_eq!(scene.tally(message).await.sending, 1);
}

pub async fn an_unknown_or_settled_chunk_is_void(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.deliver(&tickets, at(1)).await;
    let replies = scene.ask(&[tickets[0].chunk, ChunkId::from_raw(9_999)], at(2)).await;
    assert!(matches!(replies.as_slice(), [LeaseReply::Void, LeaseReply::Void]), "{replies:?}");
}

pub async fn replies_belong_to_chunks_in_order(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(12).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let mut wanted = chunks(&tickets);
    wanted.reverse();
    let replies = scene.ask(&wanted, at(1)).await;
    let given = replies.iter().filter_map(|reply| match reply {
        LeaseReply::Leased(leased) => Some(leased.id),
        LeaseReply::Paused | LeaseReply::Void => None,
    });
    assert_eq!(given.collect::<Vec<_>>(), wanted);
}

pub async fn a_device_that_is_gone_at_sending_time_has_no_token(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    store.remove_device(scene.app, devices[1]).await.expect("removed");
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    assert_eq!(leased.devices, devices);
    assert_eq!(leased.decisions, [SendDecision::Send, SendDecision::Gone, SendDecision::Send]);
    assert_eq!(leased.tokens.len(), 2);
    assert_eq!(scene.tally(message).await.sending, 3);
}

pub async fn a_second_settlement_changes_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.settled(accept_all(&leased, at(2))).await;
    let before = scene.ledger(message).await;
    let again = settle_all(&leased, record(DeliveryState::Rejected, Reason::InvalidToken), at(3));
    assert_eq!(scene.settle(again).await, SettleReply::Stale);
    assert_eq!(scene.ledger(message).await, before);
}

pub async fn a_settlement_repeated_within_one_call_is_stale(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let given = accept_all(&leased, at(2));
    let replies = store.settle(vec![given.clone(), given]).await.expect("settled");
    let written = SettleReply::Settled { tickets: Vec::new(), awaited: None };
    assert_eq!(replies, [written, SettleReply::Stale]);
    assert_eq!(scene.tally(message).await.accepted, 2);
}

pub async fn a_stale_epoch_settles_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let old = scene.lease(tickets[0].chunk, at(1)).await;
    store.release(&[old.lease()], at(1)).await.expect("given back");
    assert_eq!(scene.settle(accept_all(&old, at(2))).await, SettleReply::Stale, "nobody holds it");
    let new = scene.lease(tickets[0].chunk, at(2)).await;
    assert!(new.epoch > old.epoch);
    assert_eq!(scene.settle(accept_all(&old, at(2))).await, SettleReply::Stale, "another lease holds it");
    assert_eq!(scene.tally(message).await, Tally { sending: 2, ..Tally::default() });
    scene.settled(accept_all(&new, at(3))).await;
    assert_eq!(scene.tally(message).await.accepted, 2);
}

pub async fn settling_an_unknown_chunk_is_stale(store: &dyn Store) {
    let unknown = Settlement {
        chunk: ChunkId::from_raw(404),
        epoch: 1,
        now: at(0),
        records: vec![record(DeliveryState::Accepted, Reason::None)],
        attempts: 1,
        tokens: Vec::new(),
        children: Vec::new(),
        awaited: Vec::new(),
        stop: None,
    };
    assert_eq!(store.settle(vec![unknown]).await, Ok(vec![SettleReply::Stale]));
}

pub async fn an_incoherent_settlement_is_refused_and_changes_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let mut short = accept_all(&leased, at(2));
    short.records.pop();
    let mut childless = accept_all(&leased, at(2));
    childless.records[0] = record(DeliveryState::Queued, Reason::Unavailable);
    for wrong in [short, childless] {
        assert!(store.settle(vec![wrong]).await.is_err());
        assert_eq!(scene.tally(message).await, Tally { sending: 3, ..Tally::default() });
    }
    scene.settled(accept_all(&leased, at(3))).await;
}

pub async fn children_carry_on_what_is_tried_again(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(4).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let given = retry(retry(accept_all(&leased, at(2)), &[0, 3], &leased, at(10)), &[1], &leased, at(20));
    let children = scene.settled(given).await;
    assert_eq!(children.len(), 2);
    assert_eq!(children[0].lane, tickets[0].lane, "children stand in their parent's lane");
    assert_eq!((children[0].due_at, children[1].due_at), (at(10), at(20)));
    assert_eq!(scene.tally(message).await, Tally { queued: 3, accepted: 1, ..Tally::default() });
    let child = scene.lease(children[0].chunk, at(10)).await;
    assert_eq!((child.devices.as_slice(), child.attempt), ([devices[0], devices[3]].as_slice(), 2));
    scene.settled(accept_all(&child, at(11))).await;
    scene.deliver(&children[1..], at(20)).await;
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { accepted: 4, ..Tally::default() });
    assert_eq!(ledger.campaign.state, CampaignState::Finished);
    assert_eq!(ledger.audience(), 4, "children add nothing to the audience");
}

pub async fn settlements_of_one_call_are_answered_in_order(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(8).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let one = scene.lease(tickets[0].chunk, at(1)).await;
    let two = scene.lease(tickets[1].chunk, at(1)).await;
    let mut stale = accept_all(&one, at(2));
    stale.epoch += 1;
    let replies = store.settle(vec![stale, retry(accept_all(&two, at(2)), &[0], &two, at(3))]).await;
    let replies = replies.expect("settled");
    assert_eq!(replies[0], SettleReply::Stale);
    assert!(matches!(&replies[1], SettleReply::Settled { tickets, .. } if tickets.len() == 1));
    assert_eq!(scene.tally(message).await, Tally { sending: 4, accepted: 3, queued: 1, ..Tally::default() });
}

pub async fn what_is_awaited_goes_on_under_the_lease_of_its_parent(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(4).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let awaited = scene.settled_but(await_some(accept_all(&leased, at(2)), &[1, 3], &leased)).await;
    assert_eq!(awaited.parent, leased.id);
    assert_eq!(scene.tally(message).await, Tally { sending: 2, accepted: 2, ..Tally::default() });
    assert!(
        store.queued(QueuedFilter::After(START, 10)).await.expect("listed").is_empty(),
        "nobody else can have it"
    );
    let states = [DeliveryState::Accepted, DeliveryState::Sending];
    for (device, state) in devices.iter().zip([states[0], states[1], states[0], states[1]]) {
        assert_eq!(scene.last_record(message, *device).await.expect("a record").state(), state);
    }
    let rest = awaited_chunk(&leased, awaited, &[1, 3]);
    let given = retry(accept_all(&rest, at(30)), &[1], &rest, at(40));
    let children = scene.settled(given).await;
    assert_eq!(scene.tally(message).await, Tally { queued: 1, accepted: 3, ..Tally::default() });
    let child = scene.lease(children[0].chunk, at(40)).await;
    assert_eq!((child.devices.as_slice(), child.attempt), ([devices[3]].as_slice(), 2));
    scene.settled(accept_all(&child, at(41))).await;
    assert_eq!(scene.state(message).await, CampaignState::Finished);
}

pub async fn what_is_awaited_settles_after_its_campaign_was_canceled(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(4).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, CampaignAction::Cancel, at(2)).await;
    let given = retry(await_some(accept_all(&leased, at(3)), &[1], &leased), &[2], &leased, at(9));
    let awaited = scene.settled_but(given).await;
    let open = Tally { sending: 1, accepted: 2, canceled: 1, ..Tally::default() };
    assert_eq!(scene.tally(message).await, open);
    scene.settled(accept_all(&awaited_chunk(&leased, awaited, &[1]), at(4))).await;
    assert_eq!(scene.tally(message).await, Tally { sending: 0, accepted: 3, ..open });
    assert!(scene.ledger(message).await.campaign.ended_at.is_some());
}

pub async fn what_is_awaited_in_a_crash_is_released_and_counted(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(4).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let awaited = scene.settled_but(await_some(accept_all(&leased, at(2)), &[2], &leased)).await;
    let (recovery, _) = store.recover(INSTANCE + 1, at(3)).await.expect("recovered");
    assert_eq!(recovery, Recovery { chunks: 1, deliveries: 1 });
    assert_eq!(scene.books(message).await.duplicate_bound, 1);
    let rest = awaited_chunk(&leased, awaited, &[2]);
    assert_eq!(scene.settle(accept_all(&rest, at(4))).await, SettleReply::Stale);
    let again = scene.lease(awaited.lease.chunk, at(5)).await;
    assert_eq!(
        (again.devices.as_slice(), again.ambiguous, again.attempt),
        ([devices[2]].as_slice(), true, 1)
    );
    scene.settled(settle_all(&again, Record::new(DeliveryState::Accepted, Reason::None, true), at(6))).await;
    assert_eq!(scene.books(message).await.ambiguous, 1);
}

pub async fn a_released_chunk_is_queued_again_without_an_attempt(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let back = store.release(&[leased.lease()], at(30)).await.expect("given back");
    assert_eq!((back[0].chunk, back[0].lane, back[0].due_at), (leased.id, tickets[0].lane, at(30)));
    assert_eq!(scene.tally(message).await, Tally { queued: 2, ..Tally::default() });
    let books = scene.books(message).await;
    assert_eq!((books.attempts, books.duplicate_bound), (0, 0));
    let again = scene.lease(leased.id, at(30)).await;
    assert_eq!((again.attempt, again.ambiguous), (1, false));
}

pub async fn a_chunk_is_released_only_by_its_lease(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let back =
        store.release(&[Lease { epoch: leased.epoch + 1, ..leased.lease() }], at(2)).await.expect("ignored");
    assert!(back.is_empty());
    assert_eq!(scene.tally(message).await.sending, 2);
}

pub async fn a_prolonged_lease_outlives_its_first_end(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(0)).await;
    store.extend(&[leased.lease()], lease_at(at(50))).await.expect("prolonged");
    let swept = store.sweep(100, at(70)).await.expect("swept");
    assert!(swept.released.is_empty(), "held until 110 s");
    assert_eq!(scene.tally(message).await.sending, 1);
    let swept = store.sweep(100, at(111)).await.expect("swept");
    assert_eq!(swept.released.len(), 1);
}

pub async fn a_lease_is_prolonged_only_by_its_holder(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(0)).await;
    store.extend(&[leased.lease()], lease_of(8, at(50))).await.expect("ignored");
    store
        .extend(&[Lease { epoch: leased.epoch + 1, ..leased.lease() }], lease_at(at(50)))
        .await
        .expect("ignored");
    assert_eq!(store.sweep(100, at(70)).await.expect("swept").released.len(), 1);
}

pub async fn queued_chunks_are_listed_in_order_to_be_published_again(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(14).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let mut all = chunks(&tickets);
    all.sort_unstable();
    let held = scene.lease(all[1], at(1)).await;
    let page = store.queued(QueuedFilter::After(START, 2)).await.expect("listed");
    assert_eq!(chunks(&page), [all[0], all[2]], "what is leased is not queued");
    assert_eq!(page[0].lane, tickets[0].lane);
    let rest = store.queued(QueuedFilter::After(all[2], 10)).await.expect("listed");
    assert_eq!(chunks(&rest), all[3..]);
    let children = scene.settled(retry(accept_all(&held, at(2)), &[2], &held, at(9))).await;
    let again = store.queued(QueuedFilter::After(START, 10)).await.expect("listed");
    let child = again.iter().find(|ticket| ticket.chunk == children[0].chunk).expect("listed");
    assert_eq!(child.due_at, at(9));
}
