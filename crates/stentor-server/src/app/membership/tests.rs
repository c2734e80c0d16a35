use std::cell::Cell;

use super::*;

#[tokio::test(start_paused = true)]
async fn what_is_remembered_lapses_while_a_look_hangs_and_not_before() {
    let (lapses, begun) = (Cell::new(0), Instant::now());
    let interval = Duration::from_millis(200);
    let hangs = async |millis| {
        let look = tokio::time::sleep(Duration::from_millis(millis));
        lapsing(look, begun + 3 * interval, interval, || lapses.set(lapses.get() + 1)).await;
    };
    hangs(599).await;
    assert_eq!(lapses.get(), 0);
    // Entries that others add to the cache during the hanging read lapse as well.
    hangs(901).await;
    assert_eq!(lapses.get(), 5);
}

#[tokio::test]
async fn of_too_many_campaigns_that_could_not_be_read_everything_is_looked_at_anew() {
    let missed = MissedChanges::default();
    let app = AppId::from_raw(1);
    for message in 0..20_000 {
        missed.note_acted(app, MessageId::from_raw(message));
    }
    let taken = missed.next().await;
    assert!(taken.all && taken.acted.len() < 20_000);
    missed.note_acted(app, MessageId::from_raw(7));
    let taken = missed.next().await;
    assert!(!taken.all && taken.acted == [(app, MessageId::from_raw(7))].into());
}
