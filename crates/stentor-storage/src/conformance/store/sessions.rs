//! Sessions that ended before their time.

use stentor_core::ports::store::{EndedSession, Store};

use crate::conformance::scene::at;

/// An ended session is known as such, also if it ends again, until it has expired.
pub async fn an_ended_session_is_known_until_it_expires(store: &dyn Store) {
    let [short, long] =
        [(u64::MAX, 10), (7, 60)].map(|(number, expires)| EndedSession { number, expires_at: at(expires) });
    for (ended, second) in [(short, 0), (long, 0), (long, 1)] {
        store.end_session(ended, at(second)).await.expect("ended, or ended again");
    }
    let known = async |number| store.is_session_ended(number).await.expect("read");
    assert!(known(short.number).await && known(long.number).await && !known(8).await);
    let later = EndedSession { number: 8, expires_at: at(60) };
    store.end_session(later, at(10)).await.expect("ended");
    assert!(!known(short.number).await, "it has expired");
    assert!(known(long.number).await && known(later.number).await);
}
