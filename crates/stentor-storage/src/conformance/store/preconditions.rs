//! Changes with a precondition, which is checked within the change.

use stentor_core::app::App;
use stentor_core::audit::AuditAction;
use stentor_core::device::{DevicePatch, ProviderKind};
use stentor_core::group::Member;
use stentor_core::name::Locale;
use stentor_core::ports::store::{
    AuditFilter, Change, NewAuditEntry, Precondition, Removal, Store, StoreError,
};
use stentor_core::schedule::ScheduleState;

use super::audit::{by_key, schedule};
use crate::conformance::PlainChanges;
use crate::conformance::scene::{Scene, at, first, group, person, registration, topic};

pub async fn a_device_is_changed_and_removed_only_as_it_must_be(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "one")).await;
    let seen = store.device(scene.app, device).await.expect("there");
    let as_seen = is(&seen);
    let changed = store.update_device(scene.app, device, &in_locale("de"), at(1), &as_seen).await;
    let changed = changed.expect("changed");
    assert_eq!(changed.facts.locale, in_locale("de").locale.flatten());
    let late = store.update_device(scene.app, device, &in_locale("fr"), at(2), &as_seen).await;
    assert_eq!(late, refused());
    assert_eq!(store.remove(scene.app, Removal::Device(device, as_seen.clone())).await, refused());
    assert_eq!(store.device(scene.app, device).await, Ok(changed.clone()), "what is refused changes nothing");
    store.remove(scene.app, Removal::Device(device, is(&changed))).await.expect("removed");
    let gone = store.remove(scene.app, Removal::Device(device, is(&changed))).await;
    assert!(matches!(gone, Err(StoreError::NotFound(_))), "{gone:?}");
}

pub async fn of_changes_of_one_state_at_the_same_time_one_is_made(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "one")).await;
    let as_seen = is(&store.device(scene.app, device).await.expect("there"));
    let patch = in_locale("de");
    let change = |now| store.update_device(scene.app, device, &patch, now, &as_seen);
    let (a, b, c, d) = tokio::join!(change(at(1)), change(at(2)), change(at(3)), change(at(4)));
    let results = [a, b, c, d];
    assert_eq!(results.iter().filter(|one| one.is_ok()).count(), 1);
    assert_eq!(results.iter().filter(|one| **one == refused()).count(), 3);
}

pub async fn people_and_groups_are_made_only_where_there_is_none_when_they_must_be_new(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let ada = store.put_user(scene.app, &person("ada"), at(1), &is_new()).await.expect("made");
    assert_eq!(store.put_user(scene.app, &person("ada"), at(2), &is_new()).await, refused());
    assert_eq!(store.put_user(scene.app, &person("ada"), at(2), &is(&ada)).await, Ok(ada));
    let known = Precondition::new(|user| user.is_some());
    assert_eq!(store.put_user(scene.app, &person("bob"), at(2), &known).await, refused());
    assert!(store.user(scene.app, &person("bob")).await.is_err(), "what is refused makes nobody known");

    let team = store.put_group(scene.app, &group("team"), at(1), &is_new()).await.expect("made");
    assert_eq!(store.put_group(scene.app, &group("team"), at(2), &is_new()).await, refused());
    assert_eq!(store.put_group(scene.app, &group("team"), at(2), &is(&team)).await, Ok(team));
    let known = Precondition::new(|group| group.is_some());
    assert_eq!(store.put_group(scene.app, &group("other"), at(2), &known).await, refused());
    assert!(store.group(scene.app, &group("other")).await.is_err(), "nor a group");
}

pub async fn people_groups_and_topics_are_removed_only_as_they_must_be(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let ada = store.create_user(scene.app, &person("ada"), at(0)).await.expect("made");
    let team = store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let devices = scene.fcm(2).await;
    store.subscribe(scene.app, &topic("news"), &devices[..1]).await.expect("subscribed");
    let news = store.topic(scene.app, &topic("news")).await.expect("there");

    let mut given = registration(ProviderKind::Fcm, "of-ada");
    given.facts.user = Some(person("ada"));
    let device = scene.register(given).await;
    let members = [Member::Device(device)];
    store.add_members(scene.app, &group("team"), &members, at(0)).await.expect("added");
    store.subscribe(scene.app, &topic("news"), &devices).await.expect("subscribed");
    assert_eq!(store.remove(scene.app, Removal::User(person("ada"), is(&ada))).await, refused());
    assert_eq!(store.remove(scene.app, Removal::Group(group("team"), is(&team))).await, refused());
    assert_eq!(store.remove(scene.app, Removal::Topic(topic("news"), is(&news))).await, refused());

    let ada = store.user(scene.app, &person("ada")).await.expect("there still");
    let team = store.group(scene.app, &group("team")).await.expect("there still");
    let news = store.topic(scene.app, &topic("news")).await.expect("there still");
    store.remove(scene.app, Removal::User(person("ada"), is(&ada))).await.expect("forgotten");
    store.remove(scene.app, Removal::Group(group("team"), is(&team))).await.expect("removed");
    store.remove(scene.app, Removal::Topic(topic("news"), is(&news))).await.expect("removed");
    let gone = store.remove(scene.app, Removal::Topic(topic("news"), is_new())).await;
    assert!(matches!(gone, Err(StoreError::NotFound(_))), "{gone:?}");
}

pub async fn apps_and_schedules_are_deleted_only_as_they_must_be_and_leave_no_entry_otherwise(
    store: &dyn Store,
) {
    let scene = Scene::new(store).await;
    let (app, planned) = (store.app(scene.app).await.expect("there"), schedule(scene.app, 80));
    store.create_schedule(&planned, None).await.expect("made");
    let as_made = is(&store.schedule(scene.app, planned.id).await.expect("there"));
    store.set_schedule(scene.app, planned.id, ScheduleState::Paused, None).await.expect("paused");
    let paused = is(&store.schedule(scene.app, planned.id).await.expect("there"));
    let entry = |action| Some(NewAuditEntry { note: by_key(scene.app, action), max_count: 10 });
    let delete = async |precondition: &Precondition<_>| {
        let change = Change::DeleteSchedule(scene.app, planned.id, precondition.clone());
        store.change(change, entry(AuditAction::ScheduleCancel)).await.map(drop)
    };
    assert_eq!(delete(&as_made).await, refused());
    let renamed = is(&App { created_at: at(99), ..app.clone() });
    let other = Change::DeleteApp(scene.app, renamed);
    assert_eq!(store.change(other, entry(AuditAction::AppDelete)).await.map(drop), refused());
    let trail = store.audit(AuditFilter::default(), first(10)).await.expect("listed");
    assert_eq!(trail, Vec::new(), "a change that was refused leaves no entry");

    assert_eq!(delete(&paused).await, Ok(()));
    assert!(matches!(delete(&paused).await, Err(StoreError::NotFound(_))));
    store.change(Change::DeleteApp(scene.app, is(&app)), None).await.expect("deleted");
    let gone = store.change(Change::DeleteApp(scene.app, is(&app)), None).await;
    assert!(matches!(gone, Err(StoreError::NotFound(_))), "{gone:?}");
}

fn in_locale(text: &str) -> DevicePatch {
    DevicePatch { locale: Some(Locale::new(text).ok()), ..DevicePatch::default() }
}

/// The thing must be as it was seen.
fn is<T: Clone + PartialEq + Send + Sync + 'static>(seen: &T) -> Precondition<T> {
    let seen = seen.clone();
    Precondition::new(move |present: Option<&T>| present == Some(&seen))
}

/// There must be no such thing.
fn is_new<T: 'static>() -> Precondition<T> {
    Precondition::new(|present: Option<&T>| present.is_none())
}

const fn refused<T>() -> Result<T, StoreError> {
    Err(StoreError::PreconditionFailed)
}
