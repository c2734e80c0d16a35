use super::unwritten::UnwrittenReceipts;
use super::*;

fn device(number: u64) -> DeviceId {
    DeviceId::from_raw(number)
}

/// Returns true if a wait is already over.
async fn is_over(wait: impl Future<Output = ()>) -> bool {
    tokio::time::timeout(Duration::ZERO, wait).await.is_ok()
}

#[tokio::test]
async fn a_device_waits_for_its_own_receipts_alone() {
    let unwritten = UnwrittenReceipts::default();
    unwritten.add(device(1));
    unwritten.add(device(1));
    assert!(is_over(unwritten.none_of(device(2))).await);
    unwritten.remove(device(1));
    assert!(!is_over(unwritten.none_of(device(1))).await, "one is left");
    assert!(!is_over(unwritten.none()).await);
    let waiting = async { tokio::join!(unwritten.none_of(device(1)), unwritten.none()) };
    tokio::join!(waiting, async { unwritten.remove(device(1)) });
    assert!(is_over(unwritten.none()).await);
}

#[tokio::test(start_paused = true)]
async fn it_is_known_how_long_nothing_was_written() {
    let unwritten = UnwrittenReceipts::default();
    let second = Duration::from_secs(1);
    tokio::time::advance(second).await;
    assert_eq!(unwritten.stalled_for(), Duration::ZERO, "nothing waits");
    unwritten.add(device(1));
    unwritten.add(device(2));
    tokio::time::advance(second).await;
    assert_eq!(unwritten.stalled_for(), second);
    unwritten.remove(device(1));
    assert_eq!(unwritten.stalled_for(), Duration::ZERO, "the writer goes on");
    tokio::time::advance(second).await;
    assert_eq!(unwritten.stalled_for(), second);
    unwritten.remove(device(2));
    assert_eq!(unwritten.stalled_for(), Duration::ZERO);
}
