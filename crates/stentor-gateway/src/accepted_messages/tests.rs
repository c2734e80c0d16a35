use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use stentor_core::target::Target;
use stentor_storage::conformance::scene::Draft;
use tokio::sync::Notify;

use super::*;

const APP: AppId = AppId::from_raw(1);

/// A store that counts its reads, and answers on permission.
#[derive(Default)]
struct CountedStore {
    reads: AtomicUsize,
    asked: Notify,
    may_answer: Notify,
}

impl CountedStore {
    async fn read(&self, ids: Vec<MessageId>) -> Result<Vec<Message>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.asked.notify_one();
        self.may_answer.notified().await;
        let there = ids.into_iter().filter(|id| id.raw() < 1_000);
        Ok(there.map(|id| Draft::to(Target::Everyone).message(APP, id.raw())).collect())
    }
}

fn ids(numbers: impl IntoIterator<Item = u64>) -> Vec<MessageId> {
    numbers.into_iter().map(MessageId::from_raw).collect()
}

#[tokio::test]
async fn what_many_devices_ask_for_at_once_is_read_once() {
    let (messages, store, wanted) = (AcceptedMessages::default(), CountedStore::default(), ids(1..=300));
    let ask = || messages.messages(APP, &wanted, async |unknown| store.read(unknown).await);
    let answering = async {
        store.asked.notified().await;
        store.may_answer.notify_one();
    };
    let (all, ()) = tokio::join!(join_all([ask(), ask(), ask()]), answering);
    for found in all {
        let found = found.expect("read").into_iter().map(|message| message.expect("there").id);
        assert_eq!(found.collect::<Vec<_>>(), wanted);
    }
    assert_eq!(store.reads.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn only_what_is_not_known_is_read_and_what_is_gone_is_left_out() {
    let (messages, store) = (AcceptedMessages::default(), CountedStore::default());
    messages.note(&Arc::new(Draft::to(Target::Everyone).message(APP, 2)));
    let read = async |unknown: Vec<MessageId>| {
        assert_eq!(unknown, ids([1, 1_001, 3]));
        store.may_answer.notify_one();
        store.read(unknown).await
    };
    let found = messages.messages(APP, &ids([1, 2, 1_001, 3]), read).await.expect("read");
    let found: Vec<_> =
        found.iter().map(|message| message.as_ref().map(|message| message.id.raw())).collect();
    assert_eq!(found, [Some(1), Some(2), None, Some(3)]);
}

#[tokio::test]
async fn an_app_waits_for_no_other_app() {
    let (messages, store) = (AcceptedMessages::default(), CountedStore::default());
    let (one, other) = (ids([1]), ids([2]));
    let held = messages.messages(APP, &one, async |unknown| store.read(unknown).await);
    let beside = async {
        store.asked.notified().await;
        let read = async |_| Ok(Vec::new());
        let found = messages.messages(AppId::from_raw(2), &other, read).await.expect("read");
        assert_eq!(found, [None]);
        store.may_answer.notify_one();
    };
    let (held, ()) = tokio::join!(held, beside);
    assert!(held.expect("read")[0].is_some());
}
