use stentor_core::id::ScheduleId;
use stentor_core::name::TimeZoneName;
use stentor_core::ports::store::Page;
use stentor_core::schedule::{CatchUp, Recurrence, Schedule, ScheduleState};
use stentor_server::pipeline::calendar;
use stentor_storage::conformance::PlainChanges;

use super::stub::Stub;
use super::*;

async fn schedule(house: &House, cron: &str, catch_up: CatchUp) -> ScheduleId {
    let time_zone = TimeZoneName::new("UTC").expect("a name");
    recurring(house, Recurrence { cron: cron.into(), time_zone, until: None, catch_up, exact: true }).await
}

async fn recurring(house: &House, recurrence: Recurrence) -> ScheduleId {
    recurring_in(house, APP, recurrence).await
}

async fn recurring_in(house: &House, app: AppId, recurrence: Recurrence) -> ScheduleId {
    let now = house.clock.now();
    let id = ScheduleId::from_raw(house.ids.next(now));
    let next_due = calendar::next_tick(&recurrence, now).expect("reads");
    let (state, name) = (ScheduleState::Active, None);
    let schedule = Schedule {
        id,
        app,
        name,
        spec: everyone(),
        recurrence,
        state,
        created_at: now,
        next_due,
        last_fired: None,
    };
    house.store.create_schedule(&schedule, None).await.expect("kept");
    id
}

async fn occurrences(house: &House) -> Vec<Timestamp> {
    let page = Page { after: 0, limit: 1_000 };
    let campaigns = house.store.campaigns(APP, page).await.expect("there").readable;
    campaigns.into_iter().rev().map(|campaign| campaign.due_at).collect()
}

#[tokio::test(start_paused = true)]
async fn a_schedule_fires_once_at_each_tick() {
    let house = House::open(Stub::accepting(10), quick()).await;
    house.register(10).await;
    schedule(&house, "*/10 * * * *", CatchUp::Once).await;
    house.pipeline().wake();
    pass(3_605).await;
    let ticks = occurrences(&house).await;
    assert_eq!(ticks.len(), 6);
    assert!(ticks.iter().all(|tick| tick.as_millis() % 600_000 == 0));
    assert!(house.stub.counts().values().all(|count| *count == 6));
}

async fn ticks_after_an_hour_down(catch_up: CatchUp) -> usize {
    let mut house = House::open(Stub::accepting(10), quick()).await;
    house.register(10).await;
    schedule(&house, "*/10 * * * *", catch_up).await;
    house.crash().await;
    pass(3_700).await;
    house.start(quick()).await;
    pass(30).await;
    occurrences(&house).await.len()
}

#[tokio::test(start_paused = true)]
async fn ticks_missed_while_down_are_made_up_for_as_the_schedule_says() {
    assert_eq!(ticks_after_an_hour_down(CatchUp::Once).await, 1);
    assert_eq!(ticks_after_an_hour_down(CatchUp::Skip).await, 0);
    assert_eq!(ticks_after_an_hour_down(CatchUp::All).await, 6);
}

#[tokio::test(start_paused = true)]
async fn a_message_for_later_is_sent_when_it_is_due() {
    let house = House::open(Stub::accepting(10), quick()).await;
    house.register(10).await;
    let now = house.clock.now();
    let id = MessageId::from_raw(house.ids.next(now));
    let due_at = now.plus(Duration::from_secs(100));
    let message = Message { id, app: APP, spec: everyone(), created_at: now, due_at, occurrence: None };
    let new = NewMessage { message, idempotency: None, at_once: None };
    house.store.accept(vec![new]).await.remove(0).expect("kept");
    house.pipeline().wake();
    pass(99).await;
    assert_eq!(house.stub.seen().len(), 0);
    pass(2).await;
    assert_eq!(house.stub.seen().len(), 10);
    assert_eq!(house.finished(id).await.total().accepted, 10);
}

#[tokio::test(start_paused = true)]
async fn an_audience_starts_shortly_after_the_full_minute_and_always_by_the_same() {
    let house = House::open(Stub::accepting(10), quick()).await;
    house.register(10).await;
    let time_zone = TimeZoneName::new("UTC").expect("a name");
    let cron = "*/10 * * * *".to_owned();
    recurring(&house, Recurrence { cron, time_zone, until: None, catch_up: CatchUp::Once, exact: false })
        .await;
    house.pipeline().wake();
    pass(3_635).await;
    let starts: Vec<_> = occurrences(&house).await.iter().map(|due| due.as_millis() % 600_000).collect();
    assert_eq!(starts.len(), 6);
    assert!(starts.iter().all(|after| *after == starts[0]), "{starts:?}");
    assert!((1..=30_000).contains(&starts[0]), "{starts:?}");
    assert!(house.stub.counts().values().all(|count| *count == 6));
}

fn every_minute() -> Recurrence {
    let (cron, time_zone) = ("* * * * *".to_owned(), TimeZoneName::new("UTC").expect("a name"));
    Recurrence { cron, time_zone, until: None, catch_up: CatchUp::Once, exact: true }
}

async fn count_of(house: &House, app: AppId, begun: bool) -> usize {
    let campaigns =
        house.store.campaigns(app, Page { after: 0, limit: 10_000 }).await.expect("there").readable;
    campaigns.iter().filter(|one| !begun || one.state != CampaignState::Scheduled).count()
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_schedules_of_one_app_delay_nobody_elses() {
    let mut house = House::build(Stub::accepting(10)).await;
    let other = AppId::from_raw(2);
    let name = Label::new("other").expect("fits");
    house.store.create_app(&App { id: other, name, created_at: house.clock.now() }).await.expect("kept");
    let first = recurring_in(&house, APP, every_minute()).await;
    let first = house.store.schedule(APP, first).await.expect("kept");
    let one_of =
        |app| Schedule { id: ScheduleId::from_raw(house.ids.next(first.created_at)), app, ..first.clone() };
    for _ in 1..20_000 {
        house.store.create_schedule(&one_of(APP), None).await.expect("kept");
    }
    house.store.create_schedule(&one_of(other), None).await.expect("kept");
    house.start(quick()).await;
    while count_of(&house, other, true).await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = count_of(&house, APP, false).await;
    assert!(
        before <= 500,
        "{before} of 20,000 fired before the one of another app, the last in the list, began"
    );
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_messages_for_one_instant_delay_nobody_elses() {
    let mut house = House::build(Stub::accepting(10)).await;
    let other = AppId::from_raw(2);
    let name = Label::new("other").expect("fits");
    house.store.create_app(&App { id: other, name, created_at: house.clock.now() }).await.expect("kept");
    let now = house.clock.now();
    let due_at = now.plus(Duration::from_secs(10));
    let later = |app| {
        let id = MessageId::from_raw(house.ids.next(now));
        let message = Message { id, app, spec: everyone(), created_at: now, due_at, occurrence: None };
        NewMessage { message, idempotency: None, at_once: None }
    };
    let mut all: Vec<_> = (0..10_000).map(|_| later(APP)).collect();
    all.push(later(other));
    house.store.accept(all).await.into_iter().for_each(|accepted| drop(accepted.expect("kept")));
    house.start(quick()).await;
    while count_of(&house, other, true).await == 0 {
        // Virtual time stands still while any message can begin at once.
        match house.clock.now() < due_at {
            true => tokio::time::sleep(Duration::from_millis(10)).await,
            false => tokio::task::yield_now().await,
        }
    }
    let before = count_of(&house, APP, true).await;
    assert!(before <= 500, "{before} of 10,000 began before the last, which is another app's");
}
