use std::pin::Pin;

use futures_util::future::join_all;
use futures_util::poll;
use tokio::sync::Semaphore;

use super::*;

/// A device with unreadable rows.
const DAMAGED: u64 = 13;

/// A read that records its devices, and answers on permission.
struct CountedRead {
    reads: Mutex<Vec<Vec<u64>>>,
    asked: Semaphore,
    may_answer: Semaphore,
}

impl BatchedRead for Arc<CountedRead> {
    type Key = u64;
    type Found = Option<u64>;

    async fn read(&self, devices: &[u64]) -> Result<Vec<Option<u64>>, StoreError> {
        self.reads.lock().await.push(devices.to_vec());
        self.asked.add_permits(1);
        self.may_answer.acquire().await.expect("open").forget();
        if devices.contains(&DAMAGED) {
            return Err(StoreError::Damaged("a row".to_owned()));
        }
        Ok(devices.iter().copied().map(Some).collect())
    }
}

type Reply = Result<Option<u64>, StoreError>;

struct Room {
    read: Arc<CountedRead>,
    batched: BatchedReads<Arc<CountedRead>>,
    _readers: ReaderTasks,
}

impl Room {
    fn open() -> Self {
        let (reads, closed) = (Mutex::default(), || Semaphore::new(0));
        let read = Arc::new(CountedRead { reads, asked: closed(), may_answer: closed() });
        let (batched, _readers) = BatchedReads::start(read.clone());
        Self { read, batched, _readers }
    }

    async fn ask(&self, device: u64) -> Reply {
        self.batched.find(device).await
    }

    /// Keeps all readers busy, each with one device, numbered from `first`; returns their requests.
    async fn keep_busy(&self, first: u64) -> Vec<Pin<Box<dyn Future<Output = Reply> + '_>>> {
        let mut questions: Vec<Pin<Box<dyn Future<Output = Reply> + '_>>> = Vec::new();
        for device in (first..).take(READS_MAX_COUNT) {
            let mut question = Box::pin(self.ask(device));
            assert!(poll!(&mut question).is_pending());
            self.read.asked.acquire().await.expect("open").forget();
            questions.push(question);
        }
        questions
    }

    async fn reads(&self) -> Vec<Vec<u64>> {
        self.read.reads.lock().await.clone()
    }
}

#[tokio::test]
async fn devices_that_ask_while_others_are_read_are_read_together_and_each_gets_its_own() {
    let room = Room::open();
    let busy = room.keep_busy(1).await;
    let mut others = Box::pin(join_all((100..400).map(|device| room.ask(device))));
    assert!(poll!(&mut others).is_pending());
    room.read.may_answer.add_permits(100);
    let found = join_all(busy).await.into_iter().chain(others.await);
    for (device, found) in (1..=2).chain(100..400).zip(found) {
        assert_eq!(found, Ok(Some(device)));
    }
    let counts: Vec<usize> = room.reads().await.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 1, READS_AT_ONCE_MAX_COUNT, 300 - READS_AT_ONCE_MAX_COUNT]);
}

#[tokio::test]
async fn what_cannot_be_read_of_one_device_holds_up_no_other() {
    let room = Room::open();
    let busy = room.keep_busy(1).await;
    let mut others = Box::pin(join_all((DAMAGED - 1..=DAMAGED + 1).map(|device| room.ask(device))));
    assert!(poll!(&mut others).is_pending());
    room.read.may_answer.add_permits(100);
    join_all(busy).await;
    let is_told: Vec<bool> = others.await.iter().map(Result::is_ok).collect();
    assert_eq!(is_told, [true, false, true]);
    assert_eq!(room.reads().await, [vec![1], vec![2], vec![12, 13, 14], vec![12], vec![13], vec![14]]);
}

#[tokio::test]
async fn nothing_is_read_for_whoever_asks_no_more() {
    let room = Room::open();
    let busy = room.keep_busy(1).await;
    let (mut gone, mut stays) = (Box::pin(room.ask(5)), Box::pin(room.ask(6)));
    assert!(poll!(&mut gone).is_pending() && poll!(&mut stays).is_pending());
    drop(gone);
    room.read.may_answer.add_permits(100);
    join_all(busy).await;
    assert!(stays.await.is_ok());
    assert_eq!(room.reads().await, [vec![1], vec![2], vec![6]]);
}
