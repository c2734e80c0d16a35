use super::*;

const APP: AppId = AppId::from_raw(1);

fn started(count: usize, has_more: bool) -> Started {
    Started { begun: vec![APP; count], has_more, ..Started::default() }
}

fn callers(backlog: &Arc<Backlog>, count: usize) -> Vec<AcceptGuard> {
    (0..count).map(|_| backlog.accepting()).collect()
}

fn turn(messages: u64) -> StarterTurn {
    StarterTurn { batch: BATCH_MESSAGES, by: Timestamp::default(), messages }
}

#[tokio::test(start_paused = true)]
async fn a_few_callers_are_not_many_and_many_are_for_a_while() {
    let backlog = Arc::new(Backlog::default());
    let mut waiting = callers(&backlog, FEW_CALLERS_MAX_COUNT);
    assert!(!backlog.has_many_callers());
    waiting.push(backlog.accepting());
    assert!(backlog.has_many_callers());
    waiting.truncate(1);
    assert!(backlog.has_many_callers(), "all were answered by one commit, and are about to call again");
    tokio::time::advance(MANY_CALLERS_FOR).await;
    assert!(!backlog.has_many_callers());
}

#[test]
fn the_larger_the_backlog_the_less_it_waits_and_the_more_is_begun_at_once() {
    let steps = [128, 1_000, 20_000, 80_000, FULL_MESSAGES, 10 * FULL_MESSAGES];
    assert!(steps.windows(2).all(|pair| wait_max(pair[0]) >= wait_max(pair[1])));
    assert!(steps.windows(2).all(|pair| batch(pair[0]) <= batch(pair[1])));
    assert_eq!(wait_max(FULL_MESSAGES), Duration::ZERO);
    assert_eq!((batch(0), batch(FULL_MESSAGES * 9)), (128, 128 + 256));
}

#[test]
fn less_than_a_batch_waits_less_for_callers() {
    assert_eq!((wait_max(0).as_millis(), wait_max(127).as_millis()), (60, 59));
    assert_eq!(wait_max(128).as_millis(), 159);
}

#[tokio::test(start_paused = true)]
async fn beginning_waits_for_many_callers_but_not_for_ever() {
    let backlog = Arc::new(Backlog::default());
    let mut waiting = callers(&backlog, 20);
    waiting[0].accepted(APP, Timestamp::from_millis(70));
    let more = async {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            waiting = callers(&backlog, 20);
        }
    };
    let before = Instant::now();
    let turn = tokio::select! {
        turn = backlog.turn(Timestamp::from_millis(50)) => turn,
        () = more => unreachable!(),
    };
    assert!(before.elapsed() > WAIT_MAX / 2, "callers go first");
    assert_eq!(
        (turn.batch, turn.by),
        (BATCH_MESSAGES, Timestamp::from_millis(70)),
        "though the clock went back"
    );
}

#[tokio::test(start_paused = true)]
async fn when_few_call_all_that_waits_is_begun_at_once() {
    let backlog = Arc::new(Backlog::default());
    backlog.accepting().accepted(APP, Timestamp::from_millis(70));
    backlog.arrived().await;
    let before = Instant::now();
    let turn = backlog.turn(Timestamp::from_millis(90)).await;
    assert_eq!((turn.batch, turn.by), (BATCH_MESSAGES, Timestamp::from_millis(90)));
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[test]
fn what_was_begun_is_gone_and_what_came_meanwhile_is_not() {
    let backlog = Arc::new(Backlog::default());
    let guard = backlog.accepting();
    (0..30).for_each(|_| guard.accepted(APP, Timestamp::default()));
    backlog.note_started(&turn(30), &started(16, true));
    assert_eq!(backlog.size(APP), BacklogSize { of_all: 14, of_app: 14 });
    guard.accepted(APP, Timestamp::default());
    backlog.note_started(&turn(14), &started(9, false));
    assert_eq!(backlog.messages(), 1, "the one that came meanwhile");
}

#[test]
fn what_is_begun_without_having_been_counted_takes_nothing_of_an_app_that_has_nothing() {
    let backlog = Arc::new(Backlog::default());
    let other = AppId::from_raw(2);
    backlog.accepting().accepted(other, Timestamp::default());
    backlog.note_started(&turn(1), &started(3, true));
    assert_eq!(backlog.size(APP), BacklogSize { of_all: 0, of_app: 0 });
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_the_clock_went_back_is_due_by_its_own_time() {
    let backlog = Arc::new(Backlog::default());
    backlog.accepting().accepted(APP, Timestamp::from_millis(70));
    let turn = backlog.turn(Timestamp::from_millis(70)).await;
    backlog.note_started(&turn, &started(1, false));
    backlog.accepting().accepted(APP, Timestamp::from_millis(20));
    assert_eq!(backlog.turn(Timestamp::from_millis(30)).await.by, Timestamp::from_millis(30));
}
