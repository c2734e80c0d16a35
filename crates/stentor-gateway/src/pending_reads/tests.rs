use std::pin::Pin;

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::poll;
use stentor_core::id::{ChunkId, MessageId};
use stentor_core::ports::store::Receipt;
use stentor_core::time::Timestamp;
use tokio::sync::Semaphore;

use super::*;

const APP: AppId = AppId::from_raw(1);
/// A device with unreadable rows.
const DAMAGED: u64 = 13;

/// A ledger that records the devices of each read, and answers on permission.
struct CountedLedger {
    reads: Mutex<Vec<Vec<u64>>>,
    asked: Semaphore,
    may_answer: Semaphore,
}

#[async_trait]
impl ReceiptStore for CountedLedger {
    async fn pending(
        &self,
        devices: &[(AppId, DeviceId)],
        _limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Vec<PendingDelivery>>, StoreError> {
        let devices: Vec<u64> = devices.iter().map(|(_, device)| device.raw()).collect();
        self.reads.lock().await.push(devices.clone());
        self.asked.add_permits(1);
        self.may_answer.acquire().await.expect("open").forget();
        if devices.contains(&DAMAGED) {
            return Err(StoreError::Damaged("a row".to_owned()));
        }
        Ok(devices.into_iter().map(|device| vec![delivery(device, now)]).collect())
    }

    async fn receive(&self, _receipts: Vec<Receipt>, _now: Timestamp) -> Result<Vec<bool>, StoreError> {
        Err(StoreError::Unavailable("nobody confirms here".to_owned()))
    }
}

fn delivery(device: u64, expires_at: Timestamp) -> PendingDelivery {
    let (message, chunk) = (MessageId::from_raw(device), ChunkId::from_raw(device));
    PendingDelivery { message, chunk, expires_at, is_paused: false }
}

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(7)
    }
}

struct Room {
    ledger: Arc<CountedLedger>,
    pending: PendingReads,
    _readers: [AbortOnDropHandle<()>; PENDING_READS_MAX_COUNT],
}

impl Room {
    fn open() -> Self {
        let (reads, closed) = (Mutex::default(), || Semaphore::new(0));
        let ledger = Arc::new(CountedLedger { reads, asked: closed(), may_answer: closed() });
        let (store, clock): (Arc<dyn ReceiptStore>, Arc<dyn Clock>) =
            (ledger.clone(), Arc::new(StoppedClock));
        let (pending, _readers) = PendingReads::start(&store, &clock);
        Self { ledger, pending, _readers }
    }

    async fn ask(&self, device: u64) -> PendingReply {
        self.pending.pending(DeviceIdentity { app: APP, device: DeviceId::from_raw(device) }).await
    }

    /// Keeps all readers busy, each with one device, numbered from `first`; returns their requests.
    async fn keep_busy(&self, first: u64) -> Vec<Pin<Box<dyn Future<Output = PendingReply> + '_>>> {
        let mut questions: Vec<Pin<Box<dyn Future<Output = PendingReply> + '_>>> = Vec::new();
        for device in (first..).take(PENDING_READS_MAX_COUNT) {
            let mut question = Box::pin(self.ask(device));
            assert!(poll!(&mut question).is_pending());
            self.ledger.asked.acquire().await.expect("open").forget();
            questions.push(question);
        }
        questions
    }

    async fn reads(&self) -> Vec<Vec<u64>> {
        self.ledger.reads.lock().await.clone()
    }
}

#[tokio::test]
async fn devices_that_ask_while_others_are_read_are_read_together_and_each_gets_its_own() {
    let room = Room::open();
    let busy = room.keep_busy(1).await;
    let mut others = Box::pin(join_all((100..400).map(|device| room.ask(device))));
    assert!(poll!(&mut others).is_pending());
    room.ledger.may_answer.add_permits(100);
    let found = join_all(busy).await.into_iter().chain(others.await);
    for (device, found) in (1..=2).chain(100..400).zip(found) {
        assert_eq!(found, Ok(vec![delivery(device, Timestamp::from_millis(7))]));
    }
    let counts: Vec<usize> = room.reads().await.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 1, PENDING_DEVICES_AT_ONCE_MAX_COUNT, 300 - PENDING_DEVICES_AT_ONCE_MAX_COUNT]);
}

#[tokio::test]
async fn what_cannot_be_read_of_one_device_holds_up_no_other() {
    let room = Room::open();
    let busy = room.keep_busy(1).await;
    let mut others = Box::pin(join_all((DAMAGED - 1..=DAMAGED + 1).map(|device| room.ask(device))));
    assert!(poll!(&mut others).is_pending());
    room.ledger.may_answer.add_permits(100);
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
    room.ledger.may_answer.add_permits(100);
    join_all(busy).await;
    assert!(stays.await.is_ok());
    assert_eq!(room.reads().await, [vec![1], vec![2], vec![6]]);
}
