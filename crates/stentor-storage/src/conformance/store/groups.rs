//! Requirements on every store for groups.

use crate::conformance::PlainChanges;
use stentor_core::device::ProviderKind;
use stentor_core::group::Member;
use stentor_core::id::DeviceId;
use stentor_core::limits::GROUPS_PER_MEMBER_MAX_COUNT;
use stentor_core::ports::store::{MemberAction, Store, StoreError, SubscriptionChange};
use stentor_core::target::Target;

use crate::conformance::scene::{Scene, at, group, owned_registration, person};

pub async fn a_group_is_made_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let made = store.create_group(scene.app, &group("team"), at(1)).await.expect("made");
    assert_eq!((made.created_at, made.member_count), (at(1), 0));
    let again = store.create_group(scene.app, &group("team"), at(2)).await.expect("harmless");
    assert_eq!(again, made);
    assert_eq!(store.group(scene.app, &group("team")).await, Ok(made));
}

pub async fn members_are_counted_as_they_come_and_go(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let foreign = Scene::in_app(store, 2).await.fcm(1).await[0];
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let members = [Member::User(person("ada")), Member::Device(device), Member::Device(foreign)];
    let added = store.add_members(scene.app, &group("team"), &members, at(3)).await.expect("added");
    let none = SubscriptionChange::default;
    assert_eq!(added, SubscriptionChange { changed: 2, unknown_devices: vec![foreign], ..none() });
    let ada = store.user(scene.app, &person("ada")).await.expect("made known");
    assert_eq!(ada.created_at, at(3));
    let again = store.add_members(scene.app, &group("team"), &members[..2], at(4)).await.expect("added");
    assert_eq!(again, SubscriptionChange { unchanged: 2, ..none() });
    assert_eq!(store.group(scene.app, &group("team")).await.expect("there").member_count, 2);
    let removed = store.remove_members(scene.app, &group("team"), &members[..1]).await.expect("removed");
    assert_eq!(removed.changed, 1);
    let again = store.remove_members(scene.app, &group("team"), &members[..1]).await.expect("harmless");
    assert_eq!((again.changed, again.unchanged), (0, 1));
    let strangers = [Member::User(person("bob")), Member::Device(foreign), Member::User(person("eve"))];
    let none_left = store.remove_members(scene.app, &group("team"), &strangers).await.expect("harmless");
    let (unknown_users, unknown_devices) = (vec![person("bob"), person("eve")], vec![foreign]);
    assert_eq!(none_left, SubscriptionChange { unknown_users, unknown_devices, ..none() });
    assert_eq!(none_left.unknown(), 3);
    let left = store.members(scene.app, &group("team"), None, 10).await;
    assert_eq!(left, Ok(vec![Member::Device(device)]));
}

pub async fn members_are_listed_people_first_page_by_page(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(2).await;
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let mut members: Vec<_> = devices.into_iter().map(Member::Device).collect();
    members.extend([Member::User(person("bob")), Member::User(person("ada"))]);
    store.add_members(scene.app, &group("team"), &members, at(0)).await.expect("added");
    members.sort();
    for start in 0..=members.len() {
        let after = start.checked_sub(1).map(|last| &members[last]);
        let page = store.members(scene.app, &group("team"), after, 2).await.expect("listed");
        assert_eq!(page, members[start..members.len().min(start + 2)]);
    }
}

pub async fn groups_are_listed_by_name(store: &dyn Store) {
    let scene = Scene::new(store).await;
    for name in ["c", "a", "b"] {
        store.create_group(scene.app, &group(name), at(0)).await.expect("made");
    }
    let page = store.groups(scene.app, Some(&group("a")), 2).await.expect("listed");
    assert_eq!(page.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(store.groups(scene.app, None, 1).await.expect("listed")[0].name, group("a"));
}

pub async fn a_removed_group_is_gone_and_its_members_stay(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let member = [Member::Device(device)];
    store.add_members(scene.app, &group("team"), &member, at(0)).await.expect("added");
    store.remove_group(scene.app, &group("team")).await.expect("removed");
    assert!(matches!(store.group(scene.app, &group("team")).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.remove_group(scene.app, &group("team")).await, Err(StoreError::NotFound(_))));
    assert!(store.device(scene.app, device).await.is_ok());
    let again = store.create_group(scene.app, &group("team"), at(5)).await.expect("made");
    assert_eq!(again.member_count, 0);
}

pub async fn members_of_an_unknown_group_are_not_found(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let name = group("nobody");
    assert!(matches!(store.members(scene.app, &name, None, 1).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.add_members(scene.app, &name, &[], at(0)).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.remove_members(scene.app, &name, &[]).await, Err(StoreError::NotFound(_))));
}

pub async fn a_groups_audience_follows_its_people_and_their_devices(store: &dyn Store) {
    let scene = Scene::new(store).await;
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let owned = |token: &str, owner: &str| owned_registration(ProviderKind::Fcm, token, owner);
    let before = scene.register(owned("a", "ada")).await;
    let people = [Member::User(person("ada")), Member::User(person("bob"))];
    store.add_members(scene.app, &group("team"), &people, at(1)).await.expect("added");
    assert_eq!(reached(&scene).await, 1, "whom a person brings along");
    scene.register(owned("b", "bob")).await;
    scene.register(owned("c", "eve")).await;
    assert_eq!(reached(&scene).await, 2, "a device that a member gets later");
    scene.register(owned("a", "bob")).await;
    assert_eq!(reached(&scene).await, 2, "from one member to another");
    scene.register(owned("a", "eve")).await;
    assert_eq!(reached(&scene).await, 1, "to somebody else");
    store.add_members(scene.app, &group("team"), &[Member::Device(before)], at(2)).await.expect("added");
    scene.register(owned("a", "ada")).await;
    assert_eq!(reached(&scene).await, 2, "a member twice over is reached once");
    store.remove_members(scene.app, &group("team"), &[Member::Device(before)]).await.expect("removed");
    assert_eq!(reached(&scene).await, 2, "still through its owner");
    store.remove_user(scene.app, &person("ada")).await.expect("removed");
    assert_eq!(reached(&scene).await, 1, "gone with its owner");
    store.remove_members(scene.app, &group("team"), &people[1..]).await.expect("removed");
    assert_eq!(reached(&scene).await, 0);
    store.add_members(scene.app, &group("team"), &people[1..], at(3)).await.expect("added");
    store.remove_group(scene.app, &group("team")).await.expect("removed");
    store.create_group(scene.app, &group("team"), at(4)).await.expect("made");
    assert_eq!(reached(&scene).await, 0, "a group of the same name is another one");
}

async fn reached(scene: &Scene<'_>) -> u64 {
    let counts = scene.store.count_audience(scene.app, &Target::Group(group("team"))).await;
    counts.expect("counted").iter().map(|(_, count)| count).sum()
}

pub async fn a_person_or_device_is_in_at_most_a_thousand_groups(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let members = [Member::User(person("ada")), Member::Device(device)];
    for no in 0..GROUPS_PER_MEMBER_MAX_COUNT {
        let name = group(&format!("group-{no}"));
        store.create_group(scene.app, &name, at(0)).await.expect("made");
        store.add_members(scene.app, &name, &members, at(0)).await.expect("added");
    }
    store.create_group(scene.app, &group("more"), at(0)).await.expect("made");
    for member in members {
        let given = [Member::User(person("bob")), member.clone()];
        let refused = store.add_members(scene.app, &group("more"), &given, at(0)).await;
        assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
        let again = store.add_members(scene.app, &group("group-0"), &[member], at(0)).await;
        assert_eq!(again.map(|change| change.unchanged), Ok(1), "it is in that one already");
    }
    let more = store.group(scene.app, &group("more")).await.expect("there");
    assert_eq!(more.member_count, 0, "nobody was added");
}

pub async fn a_group_with_a_limit_takes_all_of_some_members_or_none(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let name = group("team");
    store.create_group(scene.app, &name, at(0)).await.expect("made");
    let devices: Vec<_> = scene.fcm(4).await.into_iter().map(Member::Device).collect();
    let limited = MemberAction::Add { max_count: Some(3), now: at(1) };
    let add = async |members: &[Member]| store.change_members(scene.app, &name, members, limited).await;
    assert_eq!(add(&devices[..2]).await.map(|change| change.changed), Ok(2));
    let refused = add(&devices[1..]).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    assert_eq!(
        store.group(scene.app, &name).await.map(|group| group.member_count),
        Ok(2),
        "nobody was added"
    );
    let stranger = Member::Device(DeviceId::from_raw(9_999));
    let known = [devices[0].clone(), devices[2].clone(), stranger];
    let change = add(&known).await.expect("who is there already or unknown takes no place");
    assert_eq!((change.changed, change.unchanged, change.unknown()), (1, 1, 1));
    let unlimited = store.add_members(scene.app, &name, &devices, at(2)).await;
    assert_eq!(unlimited.map(|change| change.changed), Ok(1));
    assert_eq!(add(&devices[..1]).await.map(|change| change.unchanged), Ok(1), "nobody is added");
}
