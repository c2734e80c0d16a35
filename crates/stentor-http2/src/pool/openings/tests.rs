use super::*;
use crate::limits::Limits;

fn pool(limits: Limits) -> Arc<Pool> {
    Pool::new(Box::new(|_, _| Box::pin(async {})), Vec::new(), limits, |_| false)
}

#[test]
fn as_many_connections_open_at_once_as_are_there_and_at_least_four() {
    let pool = pool(Limits::default());
    assert_eq!([0, 1, 4, 9, 40].map(|there| pool.openings_at_once(4_096, 10, there)), [4, 4, 4, 9, 40]);
    assert_eq!(pool.openings_at_once(15, 10, 40), 2, "no more than the waiting requests need");
    let brief = self::pool(Limits { max_requests_per_connection: 1, ..Limits::default() });
    assert_eq!(brief.openings_at_once(4_096, 10, 1), 64, "where each is soon used up");
}
