//! A device gets its accepted messages once and in order, if it is connected or connects later.

use std::sync::Arc;
use std::time::Duration;
use stentor_core::ports::store::UpstreamFilter;

use stentor_core::ports::settled::SettledFeed;
use stentor_core::target::Target;
use stentor_gateway::limits::DOUBTS_MAX_COUNT;
use stentor_gateway::{Closed, SessionEvent};
use stentor_storage::conformance::scene::Draft;

use crate::room::{Room, given, now, to};

#[tokio::test]
async fn a_connected_device_gets_a_message_as_soon_as_it_is_settled() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let session = room.open(identity, 10);
    assert!(now(&session).await.is_empty());
    let message = room.send(to(&[identity.device])).await;
    assert_eq!(given(&session).await, [message]);
    assert_eq!(room.delivered(message).await, 0, "nobody has confirmed it");
    session.confirm(&[message]);
    room.gateway.flush().await;
    assert_eq!(room.delivered(message).await, 1);
}

#[tokio::test]
async fn a_device_that_comes_later_gets_what_waits_in_order_of_acceptance() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let (other, _) = room.device().await;
    let one = room.send(to(&[identity.device])).await;
    let two = room.send(Draft::to(Target::Everyone).ttl(1_000)).await;
    let foreign = room.send(to(&[other.device])).await;
    let session = room.open(identity, 10);
    assert_eq!(given(&session).await, [one, two]);
    assert_eq!(given(&room.open(other, 10)).await, [two, foreign]);
}

#[tokio::test]
async fn what_was_confirmed_is_not_given_again_and_what_was_not_is() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let one = room.send(to(&[identity.device])).await;
    let two = room.send(to(&[identity.device])).await;
    let session = room.open(identity, 10);
    assert_eq!(given(&session).await, [one, two]);
    session.confirm(&[one]);
    drop(session);
    let session = room.open(identity, 10);
    assert_eq!(given(&session).await, [two]);
    session.confirm(&[two, two]);
    session.confirm(&[two, one]);
    room.gateway.flush().await;
    assert_eq!((room.delivered(one).await, room.delivered(two).await), (1, 1));
    assert!(now(&session).await.is_empty());
}

#[tokio::test]
async fn a_process_that_has_just_begun_gives_only_so_much_until_some_is_confirmed() {
    let room = Room::new().await;
    let mut sessions = Vec::new();
    for _ in 0..DOUBTS_MAX_COUNT + 50 {
        sessions.push(room.open(room.device().await.0, 10));
        assert!(now(&sessions[sessions.len() - 1]).await.is_empty());
    }
    let message = room.send(Draft::to(Target::Everyone).ttl(1_000)).await;
    let (mut with, mut without) = (Vec::new(), sessions);
    // Longer than it takes to offer the message to all sessions.
    for _ in 0..20 {
        for session in std::mem::take(&mut without) {
            let list = if now(&session).await.is_empty() { &mut without } else { &mut with };
            list.push(session);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((with.len(), without.len()), (DOUBTS_MAX_COUNT, 50));
    // One place is free again, or more if the receipt came at once.
    with[0].confirm(&[message]);
    room.gateway.flush().await;
    assert_eq!(given(&without[0]).await, [message]);
    // Unconfirmed messages of a closed session are delivered again anyway.
    with.drain(1..).for_each(drop);
    for session in &without[1..] {
        assert_eq!(given(session).await, [message]);
    }
}

#[tokio::test]
async fn a_device_says_at_its_return_what_it_got_before() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let one = room.send(to(&[identity.device])).await;
    let two = room.send(to(&[identity.device])).await;
    drop(given(&room.open(identity, 10)).await);
    let session = room.open(identity, 10);
    session.confirm_earlier(&[one]).await.expect("told");
    assert_eq!(given(&session).await, [two]);
    room.gateway.flush().await;
    assert_eq!(room.delivered(one).await, 1);
}

#[tokio::test]
async fn no_more_is_given_than_the_window_until_some_is_confirmed() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let session = room.open(identity, 2);
    assert!(now(&session).await.is_empty());
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.push(room.send(to(&[identity.device])).await);
    }
    let mut got = Vec::new();
    while got.len() < 5 {
        let some = given(&session).await;
        assert!(session.unconfirmed() <= 2);
        session.confirm(&some);
        got.extend(some);
    }
    assert_eq!(got, sent);
}

#[tokio::test]
async fn a_second_connection_takes_the_session_over() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let first = room.open(identity, 10);
    let message = room.send(to(&[identity.device])).await;
    let second = room.open(identity, 10);
    assert_eq!(first.next().await.expect_err("over"), Closed::TakenOver);
    drop(first);
    assert!(room.gateway.is_connected(identity.device), "the older one does not take the newer one along");
    assert_eq!(given(&second).await, [message]);
}

#[tokio::test]
async fn a_device_that_comes_to_another_server_is_left_with_the_later_session_whatever_is_heard_late() {
    let (here, there) = (Room::new().await, Room::new().await);
    // Both servers know the same devices; these two rooms number them alike.
    let ((identity, _), (same, _)) = (here.device().await, there.device().await);
    assert_eq!(identity, same);
    let former = here.open(identity, 10);
    let claimed = here.gateway.next_claims().await;
    assert_eq!(claimed.iter().map(|claim| claim.identity).collect::<Vec<_>>(), [identity]);
    // Its own claim, received back, ends nothing.
    here.gateway.hear_claim(&claimed[0]);
    there.set_seconds(11);
    let later = there.open(identity, 10);
    let claims = there.gateway.next_claims().await;
    // The other server received the former claim late: it replies, and its own session stays.
    there.gateway.hear_claim(&claimed[0]);
    let answer = there.gateway.next_claims().await;
    assert_eq!(answer, claims);
    assert!(now(&former).await.is_empty() && now(&later).await.is_empty(), "both go on");
    here.gateway.hear_claim(&claims[0]);
    assert_eq!(former.next().await.expect_err("over"), Closed::TakenOver);
    assert!(now(&later).await.is_empty());
    // Claims that could not be announced are announced later, and all of them after a gap.
    there.gateway.claim_again(&answer);
    assert_eq!(there.gateway.next_claims().await, answer);
    there.gateway.claim_all();
    assert_eq!(there.gateway.next_claims().await, answer);
}

#[tokio::test]
async fn of_messages_that_collapse_the_newest_alone_is_given() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let older = room.send(to(&[identity.device]).collapsing("score")).await;
    let plain = room.send(to(&[identity.device])).await;
    let newer = room.send(to(&[identity.device]).collapsing("score")).await;
    let session = room.open(identity, 10);
    assert_eq!(given(&session).await, [plain, newer]);
    session.confirm(&[plain, newer]);
    drop(session);
    let session = room.open(identity, 10);
    assert!(now(&session).await.is_empty(), "what was replaced does not come back");
    assert_eq!(room.delivered(older).await, 0);
}

#[tokio::test]
async fn what_has_expired_is_not_given() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    room.send(to(&[identity.device]).ttl(20)).await;
    let long = room.send(to(&[identity.device]).ttl(600)).await;
    room.set_seconds(21);
    assert_eq!(given(&room.open(identity, 10)).await, [long]);
}

#[tokio::test]
async fn a_device_for_which_too_much_waits_is_told_that_it_was_deleted() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    for _ in 0..=stentor_gateway::limits::PENDING_MAX_COUNT {
        room.send(to(&[identity.device])).await;
    }
    let session = room.open(identity, 10);
    match session.next().await {
        Ok(SessionEvent::Deleted(count)) => assert_eq!(count, stentor_gateway::limits::PENDING_MAX_COUNT + 1),
        other => panic!("not told: {other:?}"),
    }
    let after = room.send(to(&[identity.device])).await;
    assert_eq!(given(&session).await, [after]);
}

/// R16: for any order of connection, settlement and notification, each message is delivered once.
#[tokio::test]
async fn r16_a_device_that_reconnects_around_store_and_look_up_gets_each_message_once() {
    let room = Arc::new(Room::new().await);
    let (identity, _) = room.device().await;
    let mut got = Vec::new();
    let mut sent = Vec::new();
    for round in 0..200_usize {
        let (message, settled) = room.send_quietly(to(&[identity.device])).await;
        sent.push(message);
        let session = room.open(identity, 10);
        if round % 4 == 0 {
            got.extend(confirmed(&session, now(&session).await));
        }
        // The pipeline's notifications come late, early, or twice.
        for chunk in settled.iter().chain(settled.iter().filter(|_| round % 3 == 0)) {
            room.gateway.settled(chunk.clone());
        }
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        while got.len() < sent.len() {
            got.extend(confirmed(&session, given(&session).await));
        }
    }
    assert_eq!(got, sent);
}

fn confirmed(
    session: &stentor_gateway::DeviceSession,
    messages: Vec<stentor_core::id::MessageId>,
) -> Vec<stentor_core::id::MessageId> {
    session.confirm(&messages);
    messages
}

#[tokio::test]
async fn where_it_is_not_known_what_was_settled_the_ledger_says_it() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let session = room.open(identity, 10);
    assert!(now(&session).await.is_empty());
    let (message, settled) = room.send_quietly(to(&[identity.device])).await;
    for chunk in settled {
        room.gateway.settled(stentor_core::ports::settled::SettledChunk { is_certain: false, ..chunk });
    }
    assert_eq!(given(&session).await, [message]);
}

#[tokio::test]
async fn what_a_device_sends_is_kept_once_and_told() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let mut arrivals = room.gateway.upstream_arrivals();
    let draft = || stentor_gateway::UpstreamDraft {
        key: "m-1".to_owned(),
        data: serde_json::Map::from_iter([("a".to_owned(), "b".into())]),
        ttl: std::time::Duration::from_secs(60),
    };
    assert_eq!(room.gateway.keep_upstream(identity, draft()).await, Ok(true));
    assert_eq!(room.gateway.keep_upstream(identity, draft()).await, Ok(false));
    assert_eq!(arrivals.recv().await, Ok(room.app));
    let page = stentor_storage::conformance::scene::first(10);
    let waiting = room
        .store
        .upstream(room.app, UpstreamFilter::Waiting, page, stentor_storage::conformance::scene::at(11))
        .await;
    let waiting = waiting.expect("listed");
    assert_eq!((waiting.len(), waiting[0].body.as_str()), (1, r#"{"a":"b"}"#));
}

#[tokio::test]
async fn an_app_has_its_share_of_sessions_and_leaves_the_rest_to_others() {
    let room = Room::new().await;
    room.gateway.limit_sessions_per_app(2);
    let (one, _) = room.device().await;
    let (two, _) = room.device().await;
    let (three, _) = room.device().await;
    let first = room.open(one, 10);
    let second = room.open(two, 10);
    assert_eq!(room.open(three, 10).next().await.err(), Some(Closed::Crowded));
    // A reconnecting device reuses its own place, and a disconnected one frees it.
    let again = room.open(one, 10);
    assert_eq!(first.next().await.err(), Some(Closed::TakenOver));
    drop(first);
    assert!(now(&again).await.is_empty() && now(&second).await.is_empty());
    drop(second);
    assert!(now(&room.open(three, 10)).await.is_empty());
}

/// Yields until all settled messages are offered: one message in each turn.
async fn all_offered() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_window_of_one_reads_the_mailbox_once_and_not_for_each_receipt() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let mut sent = Vec::new();
    for _ in 0..300 {
        sent.push(room.send(to(&[identity.device])).await);
    }
    let (session, before) = (room.open(identity, 1), room.gateway.stats().look_ups);
    let mut got = Vec::new();
    while got.len() < sent.len() {
        got.extend(confirmed(&session, given(&session).await));
        assert!(session.unconfirmed() <= 1);
    }
    assert_eq!(got, sent);
    let look_ups = room.gateway.stats().look_ups - before;
    assert!(look_ups <= 2, "{look_ups} times all that waits was read");
}

#[tokio::test]
async fn what_comes_while_a_long_mailbox_is_given_comes_after_it_and_takes_the_place_of_older() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let mut sent = Vec::new();
    for _ in 0..6 {
        sent.push(room.send(to(&[identity.device])).await);
    }
    let older = room.send(to(&[identity.device]).collapsing("score")).await;
    let session = room.open(identity, 2);
    let mut got = confirmed(&session, given(&session).await);
    sent.push(room.send(to(&[identity.device])).await);
    got.extend(confirmed(&session, given(&session).await));
    let newer = room.send(to(&[identity.device]).collapsing("score")).await;
    sent.push(newer);
    all_offered().await;
    while got.len() < sent.len() {
        got.extend(confirmed(&session, given(&session).await));
    }
    assert_eq!(got, sent);
    room.gateway.flush().await;
    assert!(now(&session).await.is_empty());
    assert_eq!((room.delivered(older).await, room.delivered(newer).await), (0, 1));
}

#[tokio::test]
async fn what_is_held_back_or_confirmed_otherwise_while_it_waits_is_not_given() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let mut sent = Vec::new();
    for _ in 0..8 {
        sent.push(room.send(to(&[identity.device])).await);
    }
    let session = room.open(identity, 2);
    let mut got = confirmed(&session, given(&session).await);
    room.gateway.hold(room.app, sent[6]);
    assert_eq!(room.gateway.confirm(identity, &[sent[5]]).await, Ok(1));
    while got.len() < 6 {
        got.extend(confirmed(&session, given(&session).await));
    }
    assert_eq!(got, [sent[0], sent[1], sent[2], sent[3], sent[4], sent[7]]);
    room.gateway.release(room.app, sent[6]);
    assert_eq!(given(&session).await, [sent[6]]);
}

#[tokio::test]
async fn a_topic_goes_with_the_last_device_that_leaves_it() {
    let room = Room::new().await;
    let ((one, _), (other, _)) = (room.device().await, room.device().await);
    let topic = stentor_core::name::TopicName::new("news").expect("a name");
    for device in [one, other] {
        room.gateway.subscribe(device, &topic).await.expect("joined");
    }
    room.gateway.leave_topic(one, &topic).await.expect("left");
    assert_eq!(room.store.topic(room.app, &topic).await.expect("there").device_count, 1);
    room.gateway.withdraw(other).await.expect("gone");
    assert!(room.store.topic(room.app, &topic).await.is_err(), "nobody needs it");
}

#[tokio::test]
async fn a_device_that_polls_for_one_message_at_a_time_reads_its_mailbox_once() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let mut sent = Vec::new();
    for _ in 0..100 {
        sent.push(room.send(to(&[identity.device])).await);
    }
    let before = room.gateway.stats().look_ups;
    let mut got = Vec::new();
    while got.len() < sent.len() {
        let some = given(&room.open(identity, 1)).await;
        assert_eq!(given(&room.open(identity, 1)).await, some, "until it is confirmed");
        assert_eq!(room.gateway.confirm(identity, &some).await, Ok(1));
        got.extend(some);
    }
    assert_eq!(got, sent);
    let look_ups = room.gateway.stats().look_ups - before;
    assert!(look_ups <= 4, "{look_ups} times all that waits was read");
}

#[tokio::test]
async fn between_polls_a_newer_message_takes_the_place_of_an_older_one() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let one = room.send(to(&[identity.device])).await;
    let older = room.send(to(&[identity.device]).collapsing("score")).await;
    let other = room.send(to(&[identity.device])).await;
    assert_eq!(given(&room.open(identity, 1)).await, [one]);
    let newer = room.send(to(&[identity.device]).collapsing("score")).await;
    all_offered().await;
    room.gateway.confirm(identity, &[one]).await.expect("confirmed");
    assert_eq!(given(&room.open(identity, 9)).await, [other, newer]);
    assert_eq!(room.delivered(older).await, 0);
}
