//! Schedules, and messages that wait for their time.

use stentor_core::campaign::{CampaignState, Tally};
use stentor_core::id::{ChunkId, ScheduleId};
use stentor_core::message::Message;
use stentor_core::name::{Label, TimeZoneName};
use stentor_core::ports::store::{
    BrokenWork, Change, Changed, Idempotent, NewSchedule, Occurrence, QueuedFilter, Store, StoreError,
};
use stentor_core::schedule::{CatchUp, Recurrence, Schedule, ScheduleState};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use crate::conformance::PlainChanges;
use crate::conformance::scene::{Draft, Scene, after, at, first, reply, topic};

pub async fn a_message_that_is_due_later_waits(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (message, tickets) = scene.send(Draft::to(Target::Device(device)).due(at(100))).await;
    assert!(tickets.is_empty());
    let ledger = scene.ledger(message).await;
    assert_eq!((ledger.campaign.state, ledger.audience()), (CampaignState::Scheduled, 0));
    assert_eq!(store.next_due().await, Ok(Some(at(100))));
    assert!(store.start_due(10, 4, at(99)).await.expect("nothing").tickets.is_empty());
    let tickets = store.start_due(10, 4, at(100)).await.expect("started").tickets;
    assert_eq!(tickets.len(), 1);
    assert!(store.start_due(10, 4, at(100)).await.expect("nothing").tickets.is_empty(), "it begins once");
    scene.deliver(&tickets, at(101)).await;
    assert_eq!(scene.tally(message).await, Tally { accepted: 1, ..Tally::default() });
    assert_eq!(store.next_due().await, Ok(None));
}

pub async fn a_message_is_only_kept_and_begins_as_soon_as_asked(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let draft = Draft::to(Target::Device(device));
    let new = scene.new_message(draft);
    let (message, due_at) = (new.message.id, new.message.due_at);
    assert_eq!(scene.accept(new).await, Ok(Idempotent::Done(())));
    let ledger = scene.ledger(message).await;
    assert_eq!((ledger.campaign.state, ledger.audience()), (CampaignState::Scheduled, 0));
    let tickets = store.start_due(10, 4, due_at).await.expect("started").tickets;
    assert_eq!(tickets.len(), 1);
    scene.deliver(&tickets, at(101)).await;
    assert_eq!(scene.tally(message).await, Tally { accepted: 1, ..Tally::default() });
}

pub async fn a_waiting_message_takes_its_audience_when_it_begins(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let early = scene.fcm(1).await[0];
    let (wide, _) = scene.send(Draft::to(Target::Everyone).due(at(100))).await;
    assert!(store.producers().await.expect("listed").is_empty());
    let late = scene.fcm(2).await;
    store.remove_device(scene.app, early).await.expect("removed");
    store.start_due(10, 4, at(100)).await.expect("started");
    scene.fcm(3).await;
    scene.expand(wide, at(100)).await;
    assert_eq!(scene.ledger(wide).await.audience(), late.len() as u64);
}

pub async fn a_waiting_message_whose_target_is_gone_reaches_nobody(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    store.subscribe(scene.app, &topic("news"), &[device]).await.expect("subscribed");
    let (direct, _) = scene.send(Draft::to(Target::Device(device)).due(at(100))).await;
    let (wide, _) = scene.send(Draft::to(Target::Topic(topic("news"))).due(at(100))).await;
    store.remove_device(scene.app, device).await.expect("removed");
    store.remove_topic(scene.app, &topic("news")).await.expect("removed");
    assert!(store.start_due(10, 4, at(100)).await.expect("started").tickets.is_empty());
    scene.expand(wide, at(100)).await;
    for message in [direct, wide] {
        let ledger = scene.ledger(message).await;
        assert_eq!((ledger.campaign.state, ledger.audience()), (CampaignState::Finished, 0));
    }
}

pub async fn a_schedule_is_given_as_it_was_kept(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    let (one, two) = (schedule(&scene, 31, Some(at(60))), schedule(&scene, 32, None));
    for stored in [&two, &one] {
        assert_eq!(store.create_schedule(stored, None).await, Ok(Idempotent::Done(())));
    }
    assert_eq!(store.schedule(scene.app, one.id).await, Ok(one.clone()));
    assert!(matches!(store.schedule(other.app, one.id).await, Err(StoreError::NotFound(_))));
    assert_eq!(
        store.schedules(scene.app, first(1)).await.map(|listed| listed.readable),
        Ok(vec![one.clone()])
    );
    assert_eq!(store.schedules(scene.app, after(31, 5)).await.map(|listed| listed.readable), Ok(vec![two]));
    assert_eq!(store.schedules(other.app, first(5)).await.map(|listed| listed.readable), Ok(Vec::new()));
    assert_eq!(store.next_due().await, Ok(Some(at(60))));
    let again = store.create_schedule(&one, None).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
}

pub async fn a_schedule_made_twice_under_one_key_is_made_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let make = async |id, request| {
        let new = schedule(&scene, id, Some(at(60)));
        store.create_schedule(&new, Some(reply("key", request, "made"))).await.expect("answered")
    };
    assert_eq!(make(31, 1).await, Idempotent::Done(()));
    assert_eq!(make(32, 1).await, Idempotent::Replayed(reply("key", 1, "made").reply));
    assert_eq!(make(33, 2).await, Idempotent::KeyReused);
    assert_eq!(store.schedules(scene.app, first(5)).await.expect("listed").readable.len(), 1);
}

pub async fn due_schedules_are_those_that_are_active_and_late(store: &dyn Store) {
    let scene = Scene::new(store).await;
    for (id, due) in [(31, Some(at(60))), (32, Some(at(30))), (33, None), (34, Some(at(90)))] {
        store.create_schedule(&schedule(&scene, id, due), None).await.expect("kept");
    }
    let paused = ScheduleId::from_raw(32);
    store.set_schedule(scene.app, paused, ScheduleState::Paused, Some(at(30))).await.expect("paused");
    let due = store.due_schedules(at(60), 10).await.expect("listed");
    assert_eq!(due.iter().map(|one| one.id.raw()).collect::<Vec<_>>(), [31]);
    assert_eq!(store.due_schedules(at(90), 1).await.expect("listed").len(), 1);
    assert_eq!(store.next_due().await, Ok(Some(at(60))), "a paused schedule is not waited for");
}

pub async fn schedules_are_counted_by_app_while_they_may_fire(store: &dyn Store) {
    let (scene, other) = (Scene::new(store).await, Scene::in_app(store, 2).await);
    for id in 31..35 {
        store.create_schedule(&schedule(&scene, id, Some(at(60))), None).await.expect("kept");
    }
    store.create_schedule(&schedule(&other, 41, Some(at(60))), None).await.expect("kept");
    for (id, state) in
        [(31, ScheduleState::Paused), (32, ScheduleState::Canceled), (33, ScheduleState::Finished)]
    {
        store.set_schedule(scene.app, ScheduleId::from_raw(id), state, None).await.expect("set");
    }
    let create = async |scene: &Scene<'_>, id, most| {
        let new = NewSchedule {
            schedule: schedule(scene, id, Some(at(60))),
            idempotency: None,
            max_count: Some(most),
        };
        store.change(Change::CreateSchedule(Box::new(new)), None).await
    };
    let refused = create(&scene, 35, 2).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    assert_eq!(create(&scene, 35, 3).await, Ok(Changed::Stored(Idempotent::Done(()))));
    assert_eq!(create(&other, 42, 2).await, Ok(Changed::Stored(Idempotent::Done(()))));
}

pub async fn every_app_has_its_turn_when_more_schedules_are_due_than_asked_for(store: &dyn Store) {
    let (scene, other) = (Scene::new(store).await, Scene::in_app(store, 2).await);
    for id in 31..91 {
        store.create_schedule(&schedule(&scene, id, Some(at(60))), None).await.expect("kept");
    }
    store.create_schedule(&schedule(&other, 91, Some(at(61))), None).await.expect("kept");
    let due = store.due_schedules(at(61), 10).await.expect("listed");
    assert_eq!((due.len(), due[1].id.raw()), (10, 91));
    let due = store.due_schedules(at(60), 10).await.expect("listed");
    assert_eq!(due.iter().map(|one| one.id.raw()).collect::<Vec<_>>(), (31..41).collect::<Vec<_>>());
}

pub async fn every_app_has_its_turn_when_more_messages_are_due_than_begin_at_once(store: &dyn Store) {
    let (scene, other) = (Scene::new(store).await, Scene::in_app(store, 2).await);
    let (device, theirs) = (scene.fcm(1).await[0], other.fcm(1).await[0]);
    for _ in 0..60 {
        scene.send(Draft::to(Target::Device(device)).due(at(100))).await;
    }
    let (late, _) = other.send(Draft::to(Target::Device(theirs)).due(at(101))).await;
    assert_eq!(store.start_due(10, 4, at(101)).await.expect("started").tickets.len(), 10);
    assert_eq!(other.state(late).await, CampaignState::Running);
    let mut begun = 10;
    while begun < 61 {
        begun += store.start_due(10, 4, at(101)).await.expect("started").tickets.len();
    }
    assert!(store.start_due(10, 4, at(101)).await.expect("nothing").tickets.is_empty(), "each begins once");
}

pub async fn an_occurrence_fires_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let stored = schedule(&scene, 31, Some(at(60)));
    store.create_schedule(&stored, None).await.expect("kept");
    let occurrence = occurrence(&scene, Target::Device(device), at(60), Some(at(120)));
    assert_eq!(store.fire(&occurrence).await, Ok(true));
    let again = Occurrence { message: Some(message(&scene, Target::Everyone, at(60))), ..occurrence.clone() };
    assert_eq!(store.fire(&again).await, Ok(false), "(schedule, instant) fires once");
    let advanced = store.schedule(scene.app, stored.id).await.expect("found");
    assert_eq!((advanced.next_due, advanced.last_fired), (Some(at(120)), Some(at(60))));
    assert_eq!(advanced.state, ScheduleState::Active);
    assert_eq!(store.campaigns(scene.app, first(10)).await.expect("listed").readable.len(), 1);
    let fired = occurrence.message.expect("a message");
    assert_eq!(store.message(scene.app, fired.id).await, Ok(fired.clone()));
    store.start_due(10, 4, at(61)).await.expect("started");
    let tickets = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed");
    scene.deliver(&tickets, at(62)).await;
    assert_eq!(scene.tally(fired.id).await, Tally { accepted: 1, ..Tally::default() });
}

pub async fn a_tick_that_is_not_the_next_one_does_not_fire(store: &dyn Store) {
    let scene = Scene::new(store).await;
    store.create_schedule(&schedule(&scene, 31, Some(at(60))), None).await.expect("kept");
    let early = occurrence(&scene, Target::Everyone, at(0), Some(at(60)));
    assert_eq!(store.fire(&early).await, Ok(false));
    let unknown = Occurrence { schedule: ScheduleId::from_raw(404), ..early };
    assert_eq!(store.fire(&unknown).await, Ok(false));
    assert_eq!(store.campaigns(scene.app, first(10)).await.map(|listed| listed.readable), Ok(Vec::new()));
}

pub async fn a_paused_or_canceled_schedule_does_not_fire(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let id = ScheduleId::from_raw(31);
    store.create_schedule(&schedule(&scene, 31, Some(at(60))), None).await.expect("kept");
    for state in [ScheduleState::Paused, ScheduleState::Canceled] {
        store.set_schedule(scene.app, id, state, Some(at(60))).await.expect("set");
        let occurrence = occurrence(&scene, Target::Everyone, at(60), Some(at(120)));
        assert_eq!(store.fire(&occurrence).await, Ok(false), "{state}");
    }
    let late = store.set_schedule(scene.app, id, ScheduleState::Active, Some(at(60))).await;
    assert!(matches!(late, Err(StoreError::Conflict(_))), "what was canceled stays so: {late:?}");
    let page = stentor_core::ports::store::Page { after: 0, limit: 10 };
    assert_eq!(store.schedules(scene.app, page).await.expect("read").readable.len(), 1);
    store.set_schedule(scene.app, id, ScheduleState::Deleted, None).await.expect("deleted");
    assert_eq!(
        store.schedules(scene.app, page).await.expect("read").readable,
        [],
        "what was deleted is not listed"
    );
    let again = store.set_schedule(scene.app, id, ScheduleState::Canceled, None).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "what was deleted stays so: {again:?}");
}

pub async fn a_skipped_tick_advances_and_sends_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let stored = schedule(&scene, 31, Some(at(60)));
    store.create_schedule(&stored, None).await.expect("kept");
    let skipped = Occurrence { schedule: stored.id, instant: at(60), message: None, next_due: Some(at(120)) };
    assert_eq!(store.fire(&skipped).await, Ok(true));
    let advanced = store.schedule(scene.app, stored.id).await.expect("found");
    assert_eq!((advanced.next_due, advanced.last_fired), (Some(at(120)), None));
    assert_eq!(store.campaigns(scene.app, first(10)).await.map(|listed| listed.readable), Ok(Vec::new()));
}

pub async fn a_schedule_without_a_further_tick_is_finished(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let stored = schedule(&scene, 31, Some(at(60)));
    store.create_schedule(&stored, None).await.expect("kept");
    assert_eq!(store.fire(&occurrence(&scene, Target::Everyone, at(60), None)).await, Ok(true));
    let ended = store.schedule(scene.app, stored.id).await.expect("found");
    assert_eq!((ended.state, ended.next_due), (ScheduleState::Finished, None));
    assert_eq!(store.due_schedules(at(1_000), 10).await, Ok(Vec::new()));
}

fn schedule(scene: &Scene<'_>, id: u64, next_due: Option<Timestamp>) -> Schedule {
    let time_zone = TimeZoneName::new("Europe/Rome").expect("a zone");
    let cron = "* * * * *".to_owned();
    Schedule {
        id: ScheduleId::from_raw(id),
        app: scene.app,
        name: Some(Label::new("every minute").expect("a label")),
        spec: Draft::to(Target::Everyone).message(scene.app, 1).spec,
        recurrence: Recurrence {
            cron,
            time_zone,
            until: Some(at(9_000)),
            catch_up: CatchUp::All,
            exact: true,
        },
        state: ScheduleState::Active,
        created_at: at(0),
        next_due,
        last_fired: None,
    }
}

fn occurrence(
    scene: &Scene<'_>,
    target: Target,
    instant: Timestamp,
    next_due: Option<Timestamp>,
) -> Occurrence {
    let message = Some(message(scene, target, instant));
    Occurrence { schedule: ScheduleId::from_raw(31), instant, message, next_due }
}

fn message(scene: &Scene<'_>, target: Target, instant: Timestamp) -> Message {
    let message = Draft::to(target).sent_at(instant).message(scene.app, scene.next());
    Message { occurrence: Some((ScheduleId::from_raw(31), instant)), ..message }
}

pub async fn a_schedule_in_quarantine_fires_no_more_and_can_be_canceled(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let one = schedule(&scene, 31, Some(at(60)));
    store.create_schedule(&one, None).await.expect("kept");
    store.quarantine(BrokenWork::Schedule(one.id), at(1)).await.expect("set aside");
    assert_eq!(store.schedule(scene.app, one.id).await.expect("there").state, ScheduleState::Damaged);
    assert_eq!(store.due_schedules(at(1_000), 10).await, Ok(Vec::new()));
    assert_eq!(store.next_due().await, Ok(None), "it is not waited for");
    let listed = store.schedules(scene.app, first(5)).await.expect("listed");
    assert_eq!(listed.broken, Vec::new(), "it can be read here");
    let other = Scene::in_app(store, 2).await;
    let foreign = store.delete_broken_schedule(other.app, one.id).await;
    assert!(matches!(foreign, Err(StoreError::NotFound(_))), "{foreign:?}");
    store.delete_broken_schedule(scene.app, one.id).await.expect("canceled");
    assert_eq!(store.schedule(scene.app, one.id).await.expect("there").state, ScheduleState::Deleted);
    assert_eq!(
        store.schedules(scene.app, first(5)).await.map(|listed| listed.readable),
        Ok(Vec::new()),
        "no list names it"
    );
}
