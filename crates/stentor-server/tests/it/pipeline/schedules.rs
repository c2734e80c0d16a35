use stentor_core::id::ScheduleId;
use stentor_core::name::TimeZoneName;
use stentor_core::ports::store::Page;
use stentor_core::schedule::{CatchUp, Recurrence, Schedule, ScheduleState};
use stentor_server::pipeline::calendar;

use super::stub::Stub;
use super::*;

async fn schedule(house: &House, cron: &str, catch_up: CatchUp) -> ScheduleId {
    let time_zone = TimeZoneName::new("UTC").expect("a name");
    recurring(house, Recurrence { cron: cron.into(), time_zone, until: None, catch_up, exact: true }).await
}

async fn recurring(house: &House, recurrence: Recurrence) -> ScheduleId {
    let now = house.clock.now();
    let id = ScheduleId::from_raw(house.ids.next(now));
    let next_due = calendar::next_tick(&recurrence, now).expect("reads");
    let (state, name) = (ScheduleState::Active, None);
    let schedule = Schedule {
        id,
        app: APP,
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
    let campaigns = house.store.campaigns(APP, page).await.expect("there");
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
    let new = NewMessage { message, idempotency: None, chunk_max_devices: 100, begins_later: false };
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
