use super::queue::tests::run_of;
use super::*;

#[test]
fn what_a_connection_gives_back_to_a_closed_pool_is_told_at_once() {
    let pool = Pool::new(Box::new(|_, _| Box::pin(async {})), Vec::new(), Limits::default(), |_| false);
    let run = run_of(3);
    let work = Arc::clone(&run.work);
    pool.congestion.started(run.len());
    assert!(pool.stop(), "it has no connection");
    pool.give_back(run);
    assert_eq!((work.left(), pool.stats().waiting, pool.congestion.inflight()), (0, 0, 0));
}
