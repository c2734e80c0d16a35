use stentor_core::chunk::{Class, Lane};
use stentor_core::device::ProviderKind;
use stentor_core::id::ChunkId;

use super::*;

const APP: AppId = AppId::from_raw(1);

fn begun(count: u64) -> Vec<Ticket> {
    let lane = Lane { provider: ProviderKind::Fcm, app: APP, class: Class::Urgent };
    (0..count)
        .map(|chunk| Ticket { chunk: ChunkId::from_raw(chunk), lane, due_at: Timestamp::default() })
        .collect()
}

fn crowd(rush: &Arc<Rush>, callers: usize) -> Vec<Asking> {
    (0..callers).map(|_| rush.enter()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_few_callers_are_no_rush_and_many_are_for_a_while() {
    let rush = Arc::new(Rush::default());
    let mut asking = crowd(&rush, CALM_MAX_CALLERS);
    assert!(!asking[0].in_a_rush());
    asking.push(rush.enter());
    assert!(asking[0].in_a_rush());
    asking.truncate(1);
    assert!(asking[0].in_a_rush(), "all were answered by one commit, and are about to ask again");
    tokio::time::advance(RUSH).await;
    assert!(!asking[0].in_a_rush());
}

#[test]
fn the_more_is_behind_the_less_it_waits_and_the_more_is_begun_at_once() {
    let steps = [128, 1_000, 20_000, 80_000, BEHIND_MAX_MESSAGES, 10 * BEHIND_MAX_MESSAGES];
    assert!(steps.windows(2).all(|pair| patience(pair[0]) >= patience(pair[1])));
    assert!(steps.windows(2).all(|pair| share(pair[0]) <= share(pair[1])));
    assert_eq!(patience(BEHIND_MAX_MESSAGES), Duration::ZERO);
    assert_eq!((share(0), share(BEHIND_MAX_MESSAGES * 9)), (128, 128 + 256));
}

#[test]
fn less_than_a_batch_waits_less_for_the_callers() {
    assert_eq!((patience(0).as_millis(), patience(127).as_millis()), (60, 59));
    assert_eq!(patience(128).as_millis(), 159);
}

#[tokio::test(start_paused = true)]
async fn beginning_waits_for_the_callers_but_not_for_ever() {
    let rush = Arc::new(Rush::default());
    let mut asking = crowd(&rush, 20);
    asking[0].left_behind(APP, Timestamp::from_millis(70));
    let crowds = async {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            asking = crowd(&rush, 20);
        }
    };
    let before = Instant::now();
    let (count, by) = tokio::select! {
        lull = rush.lull(Timestamp::from_millis(50)) => lull,
        () = crowds => unreachable!(),
    };
    assert!(before.elapsed() > PATIENCE / 2, "callers go first");
    assert_eq!((count, by), (BATCH_MESSAGES, Timestamp::from_millis(70)), "though the clock went back");
}

#[tokio::test(start_paused = true)]
async fn when_nobody_asks_any_more_all_that_waits_is_begun_at_once() {
    let rush = Arc::new(Rush::default());
    crowd(&rush, 20)[0].left_behind(APP, Timestamp::from_millis(70));
    tokio::time::advance(RUSH).await;
    let before = Instant::now();
    let (count, by) = rush.lull(Timestamp::from_millis(90)).await;
    assert_eq!((count, by), (BATCH_MESSAGES, Timestamp::from_millis(90)));
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[test]
fn who_has_left_little_behind_does_not_wait_behind_one_who_has_left_much() {
    let rush = Arc::new(Rush::default());
    let (asking, other) = (rush.enter(), AppId::from_raw(2));
    (0..1_023).for_each(|_| asking.left_behind(APP, Timestamp::default()));
    assert!(asking.is_begun_behind(APP) && asking.is_begun_behind(other), "they are few");
    (0..9_000).for_each(|_| asking.left_behind(APP, Timestamp::default()));
    assert!(asking.is_begun_behind(APP) && !asking.is_begun_behind(other));
    (0..2_000).for_each(|_| asking.left_behind(other, Timestamp::default()));
    assert!(asking.is_begun_behind(other), "it has its part of them");
}

#[test]
fn what_was_begun_is_no_longer_behind_and_what_came_meanwhile_is() {
    let rush = Arc::new(Rush::default());
    let asking = rush.enter();
    (0..30).for_each(|_| asking.left_behind(APP, Timestamp::default()));
    rush.note_begun(16, &begun(16), 30);
    assert_eq!(rush.behind(), 14);
    asking.left_behind(APP, Timestamp::default());
    rush.note_begun(16, &begun(9), 14);
    assert_eq!(rush.behind(), 1, "the one that came meanwhile");
}
