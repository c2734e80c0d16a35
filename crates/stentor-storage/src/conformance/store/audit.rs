//! The audit trail: a change and its entry are stored together, or neither is.

use stentor_core::account::IssuedAccount;
use stentor_core::app::{ApiKey, Credential, Scope, Scopes};
use stentor_core::audit::{Actor, AuditAction, AuditNote};
use stentor_core::campaign::{CampaignAction, CampaignState};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, KeyId, ScheduleId};
use stentor_core::name::{Label, TimeZoneName};
use stentor_core::person::Person;
use stentor_core::ports::store::{
    AuditFilter, Change, Changed, Idempotent, IdempotentReply, KeyFilter, NewAuditEntry, NewSchedule, Page,
    Precondition, PruneTask, Store, StoreError,
};
use stentor_core::schedule::{CatchUp, Recurrence, Schedule, ScheduleState};
use stentor_core::target::Target;

use crate::conformance::PlainChanges;
use crate::conformance::scene::{Draft, Scene, app, at, first, reply};

const KEY: KeyId = KeyId::from_raw(70);
/// More than any case keeps.
const MANY: u64 = 1_000;

pub async fn every_change_is_made_and_leaves_its_entry(store: &dyn Store) {
    let scene = scene_with_key(store).await;
    scene.fcm(1).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let own = scene.app;
    let schedule = schedule(own, 80);
    let credential =
        Credential { app: own, provider: ProviderKind::Apns, secret: "{}".to_owned(), updated_at: at(0) };
    let steps = [
        (Change::CreateApp(app(7)), AuditAction::AppCreate),
        (Change::CreateKey(key(own, 71)), AuditAction::KeyCreate),
        (Change::CreateAccount(account(own)), AuditAction::AccountCreate),
        (Change::DeleteAccount(own, KeyId::from_raw(72)), AuditAction::AccountDelete),
        (Change::PutCredential(credential), AuditAction::CredentialPut),
        (create(schedule.clone(), None), AuditAction::ScheduleCreate),
        (Change::SetSchedule(own, schedule.id, ScheduleState::Paused, None), AuditAction::SchedulePause),
        (Change::Act(own, message.into(), CampaignAction::Pause, at(1)), AuditAction::CampaignPause),
        (Change::DeleteCredential(own, ProviderKind::Apns), AuditAction::CredentialDelete),
        (Change::DeleteKey(own, KEY), AuditAction::KeyDelete),
        (Change::DeleteApp(AppId::from_raw(7), Precondition::none()), AuditAction::AppDelete),
    ];
    let mut actions = Vec::new();
    for (change, action) in steps {
        let before = actions.len();
        store
            .change(change, Some(NewAuditEntry { note: by_key(own, action), max_count: MANY }))
            .await
            .expect("made");
        actions.push(action);
        let entries = all(store, AuditFilter::default()).await;
        assert_eq!((entries.len(), entries[0].note.action), (before + 1, action), "the newest first");
    }
    assert_eq!(store.ledger(own, message.into()).await.expect("found").campaign.state, CampaignState::Paused);
    assert_eq!(store.schedule(own, schedule.id).await.expect("found").state, ScheduleState::Paused);
    assert!(store.app(AppId::from_raw(7)).await.is_err() && store.credentials().await == Ok(Vec::new()));
    let entries = all(store, AuditFilter::default()).await;
    let deleted = entries.iter().find(|entry| entry.note.action == AuditAction::KeyDelete).expect("kept");
    assert_eq!(deleted.note, by_key(own, AuditAction::KeyDelete));
    assert_eq!(deleted.key_name, Label::new("a key").ok(), "a key that removes itself is named");
    assert!(entries[0].key_name.is_none(), "what is asked under a key that is gone names it by its id alone");
}

pub async fn a_change_that_fails_leaves_no_entry(store: &dyn Store) {
    let scene = scene_with_key(store).await;
    let note = || by_key(scene.app, AuditAction::CampaignCancel);
    let nothing = CampaignId::from_raw(5);
    let changes = [
        Change::CreateApp(app(1)),
        Change::DeleteApp(AppId::from_raw(99), Precondition::none()),
        Change::CreateKey(key(scene.app, 70)),
        Change::DeleteKey(AppId::from_raw(99), KEY),
        Change::DeleteCredential(scene.app, ProviderKind::Fcm),
        create(schedule(AppId::from_raw(99), 80), None),
        Change::SetSchedule(scene.app, ScheduleId::from_raw(5), ScheduleState::Paused, None),
        Change::Act(scene.app, nothing, CampaignAction::Cancel, at(1)),
    ];
    for change in changes {
        let text = format!("{change:?}");
        assert!(
            store.change(change, Some(NewAuditEntry { note: note(), max_count: MANY })).await.is_err(),
            "{text}"
        );
    }
    assert_eq!(all(store, AuditFilter::default()).await, Vec::new());
    assert_eq!(store.keys(KeyFilter::App(scene.app)).await.expect("listed").len(), 1);
}

pub async fn a_repeated_schedule_leaves_one_entry(store: &dyn Store) {
    let scene = scene_with_key(store).await;
    let change = || create(schedule(scene.app, 80), Some(reply("again", 1, "{}")));
    let note = || by_key(scene.app, AuditAction::ScheduleCreate);
    let made = store.change(change(), Some(NewAuditEntry { note: note(), max_count: MANY })).await;
    assert_eq!(made, Ok(Changed::Stored(Idempotent::Done(()))));
    let again = store.change(change(), Some(NewAuditEntry { note: note(), max_count: MANY })).await;
    assert!(matches!(again, Ok(Changed::Stored(Idempotent::Replayed(_)))), "{again:?}");
    assert_eq!(all(store, AuditFilter::default()).await.len(), 1);
}

pub async fn entries_are_bounded_and_nobody_crowds_out_what_others_did(store: &dyn Store) {
    let scene = scene_with_key(store).await;
    let other = AppId::from_raw(2);
    let by_root = AuditNote { actor: Actor::Root, ..by_key(scene.app, AuditAction::AppCreate) };
    let refused = AuditNote { refused: true, ..by_key(scene.app, AuditAction::AppDelete) };
    let elsewhere = AuditNote { app: Some(other), ..by_root.clone() };
    let nowhere = AuditNote { app: None, ..by_root.clone() };
    for note in [&by_root, &elsewhere, &nowhere] {
        store
            .change(Change::Refused, Some(NewAuditEntry { note: note.clone(), max_count: 3 }))
            .await
            .expect("kept");
    }
    for round in 0..9 {
        let change = Change::PutCredential(Credential {
            app: scene.app,
            provider: ProviderKind::Null,
            secret: "{}".to_owned(),
            updated_at: at(round),
        });
        store
            .change(
                change,
                Some(NewAuditEntry { note: by_key(scene.app, AuditAction::CredentialPut), max_count: 3 }),
            )
            .await
            .expect("made");
        store
            .change(
                Change::Refused,
                Some(NewAuditEntry { note: AuditNote { at: at(round), ..refused.clone() }, max_count: 3 }),
            )
            .await
            .expect("kept");
    }
    let entries = all(store, AuditFilter::default()).await;
    let count = |wanted: AuditAction| entries.iter().filter(|entry| entry.note.action == wanted).count();
    assert_eq!(count(AuditAction::CredentialPut), 3);
    assert_eq!(count(AuditAction::AppDelete), 3);
    assert_eq!(count(AuditAction::AppCreate), 3, "what the operator did, and what was done elsewhere, stays");
    let newest = entries.iter().find(|entry| entry.note.refused).expect("kept");
    assert_eq!(newest.note, AuditNote { at: at(8), ..refused }, "the oldest go");
}

pub async fn a_person_is_named_in_the_entries_of_its_changes(store: &dyn Store) {
    let scene = scene_with_key(store).await;
    let by_person = |subject: &str, name: &str| {
        let person = Person::new(subject, name).expect("a person");
        AuditNote { actor: Actor::Person(person), ..by_key(scene.app, AuditAction::CredentialPut) }
    };
    let by_key = by_key(scene.app, AuditAction::CredentialPut);
    let refused = AuditNote { refused: true, ..by_person("cn=Bob,dc=example", "") };
    let notes =
        [by_key.clone(), by_person("248289", "Ada"), by_person("248289", "Ada Lovelace"), refused.clone()];
    for note in notes {
        let entry = NewAuditEntry { note, max_count: 1 };
        store.change(Change::Refused, Some(entry)).await.expect("kept");
    }
    let notes: Vec<_> =
        all(store, AuditFilter::default()).await.into_iter().map(|entry| entry.note).collect();
    // The entry of a person displaces no entry of a key, and is displaced by the next one of a person.
    assert_eq!(notes, [refused, by_person("248289", "Ada Lovelace"), by_key]);
}

pub async fn an_apps_entries_stay_when_it_goes(store: &dyn Store) {
    let scene = scene_with_key(store).await;
    let note = by_key(scene.app, AuditAction::KeyCreate);
    store
        .change(Change::CreateKey(key(scene.app, 71)), Some(NewAuditEntry { note, max_count: MANY }))
        .await
        .expect("made");
    let note = AuditNote { actor: Actor::Root, ..by_key(scene.app, AuditAction::AppDelete) };
    store
        .change(
            Change::DeleteApp(scene.app, Precondition::none()),
            Some(NewAuditEntry { note, max_count: MANY }),
        )
        .await
        .expect("made");
    let entries = all(store, AuditFilter { app: Some(scene.app), ..AuditFilter::default() }).await;
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1].key_name, Label::new("a key").ok(), "with the name of a key that is gone");
}

pub async fn entries_are_given_by_the_page_and_as_asked_for(store: &dyn Store) {
    let scene = scene_with_key(store).await;
    for number in 0..6 {
        let (app, action) = match number % 2 {
            0 => (scene.app, AuditAction::CredentialPut),
            _ => (AppId::from_raw(2), AuditAction::KeyCreate),
        };
        let note = AuditNote { at: at(number), thing: number.to_string(), ..by_key(app, action) };
        store.change(Change::Refused, Some(NewAuditEntry { note, max_count: MANY })).await.expect("kept");
    }
    let things = |entries: Vec<_>| -> Vec<String> {
        entries.into_iter().map(|entry: stentor_core::audit::AuditEntry| entry.note.thing).collect()
    };
    let every = AuditFilter::default();
    let page = store.audit(every, first(2)).await.expect("listed");
    let after = page[1].id.raw();
    assert_eq!(things(page), ["5", "4"]);
    assert_eq!(things(store.audit(every, Page { after, limit: 3 }).await.expect("listed")), ["3", "2", "1"]);
    let of_app = AuditFilter { app: Some(scene.app), ..every };
    assert_eq!(things(all(store, of_app).await), ["4", "2", "0"]);
    let of_action = AuditFilter { action: Some(AuditAction::KeyCreate), since: Some(at(2)), ..every };
    assert_eq!(things(all(store, of_action).await), ["5", "3"]);
}

pub async fn old_entries_are_forgotten_and_their_numbers_not_given_again(store: &dyn Store) {
    let scene = scene_with_key(store).await;
    for number in 0..5 {
        let note = AuditNote { at: at(number), ..by_key(scene.app, AuditAction::KeyCreate) };
        store.change(Change::Refused, Some(NewAuditEntry { note, max_count: MANY })).await.expect("kept");
    }
    let last = all(store, AuditFilter::default()).await[0].id;
    assert_eq!(store.prune(PruneTask::Audit { before: at(4) }, 3).await.map(|pruned| pruned.count), Ok(3));
    assert_eq!(store.prune(PruneTask::Audit { before: at(9) }, 3).await.map(|pruned| pruned.count), Ok(2));
    assert_eq!(store.prune(PruneTask::Audit { before: at(9) }, 3).await.map(|pruned| pruned.count), Ok(0));
    store
        .change(
            Change::Refused,
            Some(NewAuditEntry { note: by_key(scene.app, AuditAction::KeyCreate), max_count: MANY }),
        )
        .await
        .expect("kept");
    let entries = all(store, AuditFilter::default()).await;
    assert!(entries.len() == 1 && entries[0].id > last);
}

async fn all(store: &dyn Store, filter: AuditFilter) -> Vec<stentor_core::audit::AuditEntry> {
    store.audit(filter, first(100)).await.expect("listed")
}

async fn scene_with_key(store: &dyn Store) -> Scene<'_> {
    let scene = Scene::new(store).await;
    let made: Result<(), StoreError> = store.create_key(&key(scene.app, 70)).await;
    made.expect("kept");
    scene
}

/// Creates a note of an action by a key in its app.
pub(super) fn by_key(app: AppId, action: AuditAction) -> AuditNote {
    AuditNote {
        at: at(0),
        actor: Actor::Key(KEY),
        app: Some(app),
        action,
        thing: "a thing".to_owned(),
        detail: "a detail".to_owned(),
        address: Some([192, 0, 2, 7].into()),
        request_id: "req_1".to_owned(),
        refused: false,
    }
}

fn key(app: AppId, id: u8) -> ApiKey {
    ApiKey {
        id: KeyId::from_raw(id.into()),
        app: Some(app),
        name: Label::new("a key").expect("a label"),
        scopes: Scopes::of(&[Scope::Admin]),
        hash: [id; 32],
        created_at: at(0),
    }
}

fn create(schedule: Schedule, idempotency: Option<IdempotentReply>) -> Change {
    Change::CreateSchedule(Box::new(NewSchedule { schedule, idempotency, max_count: Some(10) }))
}

/// Makes a schedule of an app.
pub(super) fn schedule(app: AppId, id: u64) -> Schedule {
    let time_zone = TimeZoneName::new("UTC").expect("a zone");
    let recurrence = Recurrence {
        cron: "0 9 * * *".to_owned(),
        time_zone,
        until: None,
        catch_up: CatchUp::Once,
        exact: false,
    };
    Schedule {
        id: ScheduleId::from_raw(id),
        app,
        name: None,
        spec: Draft::to(Target::Everyone).message(app, 1).spec,
        recurrence,
        state: ScheduleState::Active,
        created_at: at(0),
        next_due: Some(at(9)),
        last_fired: None,
    }
}

fn account(app: AppId) -> IssuedAccount {
    IssuedAccount {
        id: KeyId::from_raw(72),
        app,
        name: Label::new("an account").expect("a label"),
        scopes: Scopes::of(&[Scope::Send]),
        public_key: vec![1],
        token_uri: "https://push.example/token".to_owned(),
        created_at: at(0),
    }
}
