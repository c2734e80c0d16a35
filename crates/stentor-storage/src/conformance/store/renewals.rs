//! Requirements on every store for registrations that name the former token of their device.

use crate::conformance::PlainChanges;
use stentor_core::delivery::DeliveryState;
use stentor_core::device::{Device, ProviderKind, Registration, TokenForm};
use stentor_core::group::Member;
use stentor_core::id::DeviceId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    DeviceFilter, Registered, Replacement, SendDecision, Store, StoreError, TokenKind,
};
use stentor_core::settlement::TokenChange;
use stentor_core::target::Target;

use super::devices::{full, many_topics};
use crate::conformance::scene::{
    Draft, Scene, at, first, group, person, record, registration, settle_all, tag, token, topic,
};

/// Starts the registration of a device at its new token.
fn renewal(new: &str, former: &str) -> Registration {
    Registration { former: Some(token(former)), ..registration(ProviderKind::Fcm, new) }
}

async fn registered(scene: &Scene<'_>, given: &[Registration], seconds: i64) -> Vec<Registered> {
    scene.store.register(scene.app, given, at(seconds)).await.expect("registered")
}

async fn device(scene: &Scene<'_>, id: DeviceId) -> Device {
    scene.store.device(scene.app, id).await.expect("found")
}

/// Returns the ids of the devices that hold some tokens.
async fn holders(scene: &Scene<'_>, tokens: &[&str]) -> Vec<Option<DeviceId>> {
    let tokens: Vec<_> = tokens.iter().map(|text| token(text)).collect();
    let held = scene.store.holders(scene.app, ProviderKind::Fcm, &tokens).await.expect("looked up");
    held.into_iter().map(|device| device.map(|device| device.id)).collect()
}

async fn everyone(scene: &Scene<'_>) -> u64 {
    let counts = scene.store.count_audience(scene.app, &Target::Everyone).await.expect("counted");
    counts.into_iter().map(|(_, count)| count).sum()
}

pub async fn a_device_whose_former_token_is_named_moves_to_the_new_one(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let id = scene.register(full("old")).await;
    let before = device(&scene, id).await;
    let again = registered(&scene, &[renewal("new", "old")], 9).await;
    let moved = Registered { device: id, created: false, replacement: Replacement::Renewed };
    assert_eq!(again, [moved]);
    let after = device(&scene, id).await;
    assert_eq!((&after.token, after.token_since), (&token("new"), at(9)));
    assert_eq!((after.registered_at, after.facts), (before.registered_at, before.facts));
    assert_eq!(store.topics_of(scene.app, id).await, Ok(vec![topic("news")]));
    assert_eq!(holders(&scene, &["old", "new"]).await, [None, Some(id)]);
    assert_eq!(everyone(&scene).await, 1);
    let repeated = registered(&scene, &[renewal("new", "old")], 10).await;
    assert_eq!(repeated, [Registered { replacement: Replacement::None, ..moved }], "repeating is harmless");
    assert_ne!(scene.register(registration(ProviderKind::Fcm, "old")).await, id, "its old token is free");
}

pub async fn a_renewal_changes_the_facts_that_it_names_and_revives_its_device(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let id = scene.register(full("old")).await;
    retire(&scene, id).await;
    assert_eq!(everyone(&scene).await, 0);
    let mut given = renewal("new", "old");
    given.facts.user = Some(person("bob"));
    given.topics = vec![topic("sport")];
    registered(&scene, &[given], 9).await;
    let after = device(&scene, id).await;
    assert!(after.retired.is_none() && after.listed);
    assert_eq!((after.facts.user, after.facts.tags), (Some(person("bob")), full("old").facts.tags));
    assert_eq!(store.topics_of(scene.app, id).await, Ok(vec![topic("news"), topic("sport")]));
    assert_eq!(store.user(scene.app, &person("bob")).await.expect("known").devices, [id]);
    assert_eq!(everyone(&scene).await, 1);
}

/// Simulates a push service that reports a device's token as dead.
async fn retire(scene: &Scene<'_>, device: DeviceId) {
    let (_, tickets) = scene.send(Draft::to(Target::Device(device)).sent_at(at(2))).await;
    let leased = scene.lease(tickets[0].chunk, at(2)).await;
    let mut given = settle_all(&leased, record(DeliveryState::Rejected, Reason::Unregistered), at(3));
    given.tokens.push(TokenChange::Retire { device, reason: Reason::Unregistered, since: None });
    scene.settled(given).await;
}

pub async fn a_former_token_that_no_device_has_changes_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = scene.devices(ProviderKind::Null, 1).await[0];
    let foreign = Scene::in_app(store, 2).await;
    foreign.register(registration(ProviderKind::Fcm, "old")).await;
    let made = registered(&scene, &[renewal("new", "old")], 1).await[0];
    assert!(made.created && made.replacement == Replacement::None && made.device > other);
    let known = registered(&scene, &[renewal("new", "older")], 2).await[0];
    assert_eq!(known, Registered { created: false, ..made });
    let same = registered(&scene, &[renewal("new", "new")], 3).await[0];
    assert_eq!(same, known, "a token does not replace itself");
    assert_eq!((everyone(&scene).await, everyone(&foreign).await), (2, 1));
}

pub async fn devices_that_turn_out_to_be_one_become_the_one_that_was_registered_first(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let id = scene.register(full("old")).await;
    let mut newer = registration(ProviderKind::Fcm, "new");
    newer.facts.tags = vec![tag("fresh")];
    newer.topics = vec![topic("news"), topic("sport")];
    let other = scene.register(newer).await;
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    store.create_group(scene.app, &group("both"), at(0)).await.expect("made");
    for (name, member) in [("team", other), ("both", id), ("both", other)] {
        let members = [Member::Device(member)];
        store.add_members(scene.app, &group(name), &members, at(0)).await.expect("added");
    }
    let mut given = renewal("new", "old");
    given.topics = vec![topic("more")];
    let made = registered(&scene, &[given], 9).await;
    assert_eq!(made, [Registered { device: id, created: false, replacement: Replacement::Merged }]);
    assert!(matches!(store.device(scene.app, other).await, Err(StoreError::NotFound(_))));
    let one = device(&scene, id).await;
    assert_eq!((&one.token, one.token_since, one.registered_at), (&token("new"), at(9), at(0)));
    // Facts that the later device lacks are those of the first one.
    let facts = full("old").facts;
    assert_eq!((one.facts.texts(), &one.facts.user), (facts.texts(), &facts.user));
    assert_eq!(one.facts.tags, [tag("fresh")], "tags are one fact");
    assert_eq!(store.user(scene.app, &person("ada")).await.expect("known").devices, [id]);
    let tagged = |text| DeviceFilter { tag: Some(tag(text)), ..DeviceFilter::default() };
    assert_eq!(store.devices(scene.app, &tagged("beta"), first(9)).await, Ok(Vec::new()));
    assert_eq!(store.devices(scene.app, &tagged("fresh"), first(9)).await.expect("listed").len(), 1);
    check_united(&scene, id).await;
    assert_eq!(holders(&scene, &["old", "new"]).await, [None, Some(id)]);
    assert_eq!(everyone(&scene).await, 1);
}

/// Checks that the device has the subscriptions and memberships of both, each counted once.
async fn check_united(scene: &Scene<'_>, id: DeviceId) {
    let names = ["more", "news", "sport"].map(topic);
    assert_eq!(scene.store.topics_of(scene.app, id).await, Ok(names.to_vec()));
    for name in &names {
        assert_eq!(scene.store.topic(scene.app, name).await.expect("there").device_count, 1, "{name:?}");
    }
    for name in ["team", "both"] {
        let (app, group) = (scene.app, group(name));
        assert_eq!(scene.store.group(app, &group).await.expect("there").member_count, 1, "{name}");
        assert_eq!(scene.store.members(app, &group, None, 9).await, Ok(vec![Member::Device(id)]), "{name}");
    }
}

pub async fn a_device_that_had_the_new_token_first_stays_in_place_of_the_one_with_the_former(
    store: &dyn Store,
) {
    let scene = Scene::new(store).await;
    let id = scene.register(registration(ProviderKind::Fcm, "new")).await;
    let other = scene.register(full("old")).await;
    let made = registered(&scene, &[renewal("new", "old")], 9).await[0];
    assert_eq!((made.device, made.replacement), (id, Replacement::Merged));
    let one = device(&scene, id).await;
    assert_eq!((one.token, one.facts), (token("new"), full("old").facts));
    assert_eq!(store.topics_of(scene.app, id).await, Ok(vec![topic("news")]));
    assert!(matches!(store.device(scene.app, other).await, Err(StoreError::NotFound(_))));
    assert_eq!(holders(&scene, &["old", "new"]).await, [None, Some(id)]);
    assert_eq!(everyone(&scene).await, 1);
}

pub async fn what_waits_for_two_devices_that_become_one_reaches_it_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let id = scene.register(registration(ProviderKind::Fcm, "old")).await;
    let other = scene.register(registration(ProviderKind::Fcm, "new")).await;
    let (_, tickets) = scene.send(Draft::to(Target::Devices(vec![id, other]))).await;
    registered(&scene, &[renewal("new", "old")], 1).await;
    let mut sent = Vec::new();
    for ticket in tickets {
        let leased = scene.lease(ticket.chunk, at(2)).await;
        let to_send = leased.decisions.iter().filter(|decision| **decision == SendDecision::Send).count();
        sent.extend((0..to_send).filter_map(|at| leased.tokens.get(at).map(ToOwned::to_owned)));
    }
    assert_eq!(sent, ["new"]);
}

pub async fn devices_with_too_many_topics_together_stay_two(store: &dyn Store) {
    let scene = Scene::new(store).await;
    for (address, from) in [("old", 0), ("new", 1_000)] {
        let mut given = registration(ProviderKind::Fcm, address);
        given.topics = many_topics(2_001 + from).split_off(from);
        given.topics.truncate(1_001);
        scene.register(given).await;
    }
    let given = [renewal("new", "old")];
    let mut more = given.clone();
    more[0].topics = vec![topic("one-more")];
    // 0 to 1,000 and 1,000 to 2,000: one topic of both is the same.
    for refused in [&given, &more] {
        let answer = store.validate_some_registrations(scene.app, refused, at(1)).await;
        assert!(matches!(answer, Err(StoreError::LimitReached(_))), "{answer:?}");
        let answer = store.register(scene.app, refused, at(1)).await;
        assert!(matches!(answer, Err(StoreError::LimitReached(_))), "{answer:?}");
    }
    assert_eq!(everyone(&scene).await, 2);
    assert_eq!(store.topic(scene.app, &topic("topic-1000")).await.expect("there").device_count, 2);
}

pub async fn renewals_that_name_each_others_tokens_are_made_in_their_order(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let (one, two) =
        (scene.register(full("a")).await, scene.register(registration(ProviderKind::Fcm, "b")).await);
    let chain = [
        renewal("c", "a"),
        renewal("d", "c"),
        // The old token belongs to another device now.
        registration(ProviderKind::Fcm, "a"),
        renewal("d", "b"),
        registration(ProviderKind::Fcm, "d"),
        registration(ProviderKind::Fcm, "e"),
        registration(ProviderKind::Fcm, "e"),
    ];
    let made = registered(&scene, &chain, 5).await;
    let effects: Vec<_> = made.iter().map(|one| (one.created, one.replacement)).collect();
    let (renewed, merged, none) = (Replacement::Renewed, Replacement::Merged, Replacement::None);
    let expected = [
        (false, renewed),
        (false, renewed),
        (true, none),
        (false, merged),
        (false, none),
        (true, none),
        (false, none),
    ];
    assert_eq!(effects, expected);
    assert!([0, 1, 3, 4].iter().all(|at| made[*at].device == one), "{made:?}");
    assert_eq!(holders(&scene, &["a", "b", "c", "d"]).await, [Some(made[2].device), None, None, Some(one)]);
    assert!(matches!(store.device(scene.app, two).await, Err(StoreError::NotFound(_))));
    assert_eq!(everyone(&scene).await, 3);
}

pub async fn many_renewals_at_once_move_each_device_and_make_none(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let ids = scene.fcm(300).await;
    let old: Vec<_> = {
        let listed = store.devices(scene.app, &DeviceFilter::default(), first(300)).await.expect("listed");
        listed.into_iter().map(|device| device.token.expose().to_owned()).collect()
    };
    let renewals: Vec<_> = (0..300).map(|at| renewal(&format!("new-{at}"), &old[at])).collect();
    let made = registered(&scene, &renewals, 5).await;
    assert!(made.iter().all(|one| !one.created && one.replacement == Replacement::Renewed));
    assert_eq!(made.iter().map(|one| one.device).collect::<Vec<_>>(), ids);
    let names: Vec<_> = (0..300).map(|at| format!("new-{at}")).collect();
    let new: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(holders(&scene, &new).await, ids.iter().copied().map(Some).collect::<Vec<_>>());
    let former: Vec<&str> = old.iter().map(String::as_str).collect();
    assert_eq!(holders(&scene, &former).await, vec![None; 300]);
    assert_eq!(everyone(&scene).await, 300);
}

pub async fn devices_are_listed_by_the_form_of_their_token(store: &dyn Store) {
    const FORM: TokenForm = TokenForm { first: "cd", rest_count: 3 };
    let scene = Scene::new(store).await;
    let mut fitting = registration(ProviderKind::Fcm, "cA-9");
    fitting.facts.user = Some(person("ada"));
    let fits = scene.register(fitting).await;
    let mut others = Vec::new();
    for address in ["cA:9", "eA-9", "cA-", "cA-90", "d\\_9"] {
        let mut other = registration(ProviderKind::Fcm, address);
        other.facts.tags = vec![tag("old")];
        others.push(scene.register(other).await);
    }
    let list = async |has_it, filter: DeviceFilter| {
        let filter = DeviceFilter { kind: Some(TokenKind { form: FORM, has_it }), ..filter };
        let found = store.devices(scene.app, &filter, first(10)).await.expect("listed");
        found.into_iter().map(|device| device.id).collect::<Vec<_>>()
    };
    let all = DeviceFilter::default;
    assert_eq!(list(true, all()).await, [fits]);
    assert_eq!(list(false, all()).await, others);
    let of_ada = || DeviceFilter { user: Some(person("ada")), ..all() };
    assert_eq!((list(true, of_ada()).await, list(false, of_ada()).await), (vec![fits], Vec::new()));
    let old = || DeviceFilter { tag: Some(tag("old")), ..all() };
    assert_eq!((list(true, old()).await, list(false, old()).await), (Vec::new(), others));
}
