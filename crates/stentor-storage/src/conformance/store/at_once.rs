//! Messages whose chunks are leased in the transaction that stores them.

use stentor_core::campaign::{CampaignState, Tally};
use stentor_core::delivery::DeliveryState;
use stentor_core::device::{Platform, ProviderKind};
use stentor_core::id::DeviceId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    AT_ONCE_MAX_DEVICES, Accepted, AtOnce, Idempotent, LeaseReply, LeasedChunk, NewMessage, SendDecision,
    SettleReply, Store, StoreError,
};
use stentor_core::settlement::TokenChange;
use stentor_core::target::{Target, TokenTarget};

use crate::conformance::PlainChanges as _;
use crate::conformance::scene::{
    Draft, INSTANCE, Scene, accept_all, at, lease_at, owned_registration, person, reply, token, topic,
};

/// The message of a draft, to be sent at once through FCM.
fn at_once(scene: &Scene<'_>, draft: Draft) -> NewMessage {
    let providers = vec![ProviderKind::Fcm];
    NewMessage { at_once: Some(AtOnce { lease: lease_at(at(0)), providers }), ..scene.new_message(draft) }
}

/// Accepts a message; returns its leased chunks, none if it waits.
async fn leased(scene: &Scene<'_>, new: NewMessage) -> Vec<LeasedChunk> {
    match scene.store.accept(vec![new]).await.remove(0).expect("accepted") {
        Idempotent::Done(Accepted::Leased(chunks)) => chunks,
        Idempotent::Done(Accepted::Waits) => Vec::new(),
        other => panic!("kept before: {other:?}"),
    }
}

pub async fn a_message_sent_at_once_is_stored_begun_and_leased_in_one(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let new = at_once(&scene, Draft::to(Target::Device(device)));
    let (message, id) = (new.message.clone(), new.message.id);
    let chunks = leased(&scene, new).await;
    let [chunk] = &chunks[..] else { panic!("one chunk: {chunks:?}") };
    assert_eq!((&*chunk.message, chunk.provider, chunk.attempt), (&message, ProviderKind::Fcm, 1));
    assert_eq!((&chunk.devices[..], &chunk.decisions[..]), (&[device][..], &[SendDecision::Send][..]));
    assert!(chunk.tokens.get(0).is_some() && !chunk.ambiguous);
    let sending = Tally { sending: 1, ..Tally::default() };
    assert_eq!((chunk.tally, scene.tally(id).await), (sending, sending));
    assert_eq!(store.message(scene.app, id).await, Ok(message));
    assert_eq!(scene.state(id).await, CampaignState::Running);
    assert_eq!(scene.start(at(1)).await, [], "it has begun already");
    let again = scene.ask(&[chunk.id], at(1)).await.remove(0);
    assert!(matches!(again, LeaseReply::Void), "it is leased already: {again:?}");
    scene.settled(accept_all(chunk, at(2))).await;
    assert_eq!(scene.tally(id).await, Tally { accepted: 1, ..Tally::default() });
    assert_eq!(scene.state(id).await, CampaignState::Finished);
    let record = scene.last_record(id, device).await.expect("a record");
    assert_eq!(record.state(), DeliveryState::Accepted);
}

pub async fn a_message_sent_at_once_has_a_chunk_for_each_provider(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let (fcm, apns) = (scene.fcm(2).await, scene.devices(ProviderKind::Apns, 1).await);
    let all = [fcm.clone(), apns.clone()].concat();
    let mut new = at_once(&scene, Draft::to(Target::Devices(all)));
    new.at_once.as_mut().expect("terms").providers.push(ProviderKind::Apns);
    let mut chunks = leased(&scene, new).await;
    chunks.sort_by_key(|chunk| chunk.devices.len());
    assert_eq!(chunks.iter().map(|chunk| chunk.devices.clone()).collect::<Vec<_>>(), [apns, fcm]);
    for chunk in &chunks {
        scene.settled(accept_all(chunk, at(1))).await;
    }
    assert_eq!(scene.state(chunks[0].message.id).await, CampaignState::Finished);
}

pub async fn a_user_and_a_token_are_sent_to_at_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let own = scene.register(owned_registration(ProviderKind::Fcm, "hers", "ada")).await;
    let target = |text: &str| {
        Target::Token(TokenTarget {
            platform: Platform::Android,
            provider: ProviderKind::Fcm,
            token: token(text),
        })
    };
    for target in [Target::User(person("ada")), target("hers"), target("hers")] {
        let chunks = leased(&scene, at_once(&scene, Draft::to(target.clone()))).await;
        assert_eq!(
            chunks.iter().map(|chunk| &chunk.devices[..]).collect::<Vec<_>>(),
            [&[own][..]],
            "{target:?}"
        );
    }
    let unknown = || at_once(&scene, Draft::to(target("of-nobody")));
    let made = leased(&scene, unknown()).await.remove(0);
    assert_eq!(made.tokens.get(0), Some("of-nobody"));
    assert!(!store.device(scene.app, made.devices[0]).await.expect("made").listed);
    let again = leased(&scene, unknown()).await.remove(0);
    assert_eq!((made.devices, again.tokens.get(0)), (again.devices, Some("of-nobody")), "it is made once");
    let next = scene.fcm(1).await[0];
    assert!(leased(&scene, at_once(&scene, Draft::to(Target::Device(next)))).await[0].devices == [next]);
}

pub async fn what_cannot_be_sent_at_once_waits_for_the_start(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(AT_ONCE_MAX_DEVICES + 1).await;
    let apns = scene.devices(ProviderKind::Apns, 1).await[0];
    for target in [
        Target::Devices(devices.clone()),
        Target::Device(apns),
        Target::Devices(vec![devices[0], apns]),
        Target::User(person("nobody")),
        Target::Everyone,
    ] {
        let new = at_once(&scene, Draft::to(target.clone()));
        let id = new.message.id;
        assert!(leased(&scene, new).await.is_empty(), "{target:?}");
        assert_eq!(scene.state(id).await, CampaignState::Scheduled, "{target:?}");
    }
    let gone = Target::Device(DeviceId::from_raw(999_999));
    let refused = store.accept(vec![at_once(&scene, Draft::to(gone))]).await.remove(0);
    assert!(matches!(refused, Err(StoreError::NotFound("device"))), "{refused:?}");
}

pub async fn content_for_live_activities_reaches_their_devices_alone(store: &dyn Store) {
    const UPDATE: &str = r#"{"event":"update","activity":"game"}"#;
    const START: &str = r#"{"event":"start"}"#;
    let scene = Scene::new(store).await;
    let mut devices = Vec::new();
    for provider in [ProviderKind::Apns, ProviderKind::LiveActivity, ProviderKind::LiveActivityStart] {
        let device = scene.register(owned_registration(provider, "a", "ada")).await;
        store.subscribe(scene.app, &topic("game"), &[device]).await.expect("subscribed");
        devices.push((provider, device));
    }
    let all: Vec<_> = devices.iter().map(|(_, device)| *device).collect();
    for target in [Target::Devices(all), Target::User(person("ada"))] {
        let draft = Draft::to(target);
        let drafts =
            [draft.clone(), draft.clone().for_live_activities(UPDATE), draft.for_live_activities(START)];
        for (draft, (provider, device)) in drafts.into_iter().zip(&devices) {
            let mut new = at_once(&scene, draft);
            new.at_once.as_mut().expect("terms").providers = devices.iter().map(|(kind, _)| *kind).collect();
            let chunks = leased(&scene, new).await;
            let reached: Vec<_> =
                chunks.iter().map(|chunk| (chunk.provider, chunk.devices.clone())).collect();
            assert_eq!(reached, [(*provider, vec![*device])]);
        }
    }
    let draft = Draft::to(Target::Topic(topic("game")));
    for (draft, (provider, _)) in
        [draft.clone(), draft.clone().for_live_activities(UPDATE), draft.for_live_activities(START)]
            .into_iter()
            .zip(&devices)
    {
        let tickets = scene.send_wide(draft).await.1;
        assert_eq!(tickets.iter().map(|ticket| ticket.lane.provider).collect::<Vec<_>>(), [*provider]);
    }
    let phone = Draft::to(Target::Device(devices[0].1)).for_live_activities(UPDATE);
    assert_eq!(scene.send(phone).await.1, [], "a phone gets no update");
}

pub async fn a_device_that_is_gone_is_no_delivery_of_a_message_sent_at_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(2).await;
    let first = leased(&scene, at_once(&scene, Draft::to(Target::Devices(devices.clone())))).await.remove(0);
    let mut retired = accept_all(&first, at(1));
    let device = devices[0];
    retired.tokens.push(TokenChange::Retire { device, reason: Reason::Unregistered, since: None });
    scene.settled(retired).await;
    let second = leased(&scene, at_once(&scene, Draft::to(Target::Devices(devices)).sent_at(at(2)))).await;
    assert_eq!(second[0].decisions, [SendDecision::Gone, SendDecision::Send]);
    assert_eq!(second[0].tokens.len(), 1);
}

pub async fn a_newer_message_that_was_sent_before_it_replaces_one_sent_at_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = Target::Device(scene.fcm(1).await[0]);
    let older = at_once(&scene, Draft::to(device.clone()).collapsing("score"));
    let newer = leased(&scene, at_once(&scene, Draft::to(device).collapsing("score"))).await.remove(0);
    assert_eq!(newer.decisions, [SendDecision::Send]);
    let older = leased(&scene, older).await.remove(0);
    assert_eq!((&older.decisions[..], older.tokens.len()), (&[SendDecision::Collapsed][..], 0));
}

pub async fn a_repeat_of_a_message_sent_at_once_leases_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let new = at_once(&scene, Draft::to(Target::Device(device)));
    let new = NewMessage { idempotency: Some(reply("key", 1, "first")), ..new };
    let mut replies = store.accept(vec![new.clone(), new]).await;
    assert!(matches!(replies.remove(0), Ok(Idempotent::Done(Accepted::Leased(_)))));
    assert!(matches!(replies.remove(0), Ok(Idempotent::Replayed(_))));
}

pub async fn what_was_leased_at_once_is_released_or_recovered_like_any_lease(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = Target::Device(scene.fcm(1).await[0]);
    let unsent = leased(&scene, at_once(&scene, Draft::to(device.clone()))).await.remove(0);
    let tickets = store.release(&[unsent.lease()], at(1)).await.expect("released");
    assert_eq!(tickets.iter().map(|ticket| ticket.chunk).collect::<Vec<_>>(), [unsent.id]);
    assert!(!scene.lease(unsent.id, at(2)).await.ambiguous, "it was never sent");
    let dead = leased(&scene, at_once(&scene, Draft::to(device))).await.remove(0);
    store.recover(INSTANCE + 1, at(3)).await.expect("recovered");
    assert!(scene.lease(dead.id, at(4)).await.ambiguous, "it may have been sent");
    assert_eq!(scene.settle(accept_all(&dead, at(5))).await, SettleReply::Stale);
}
