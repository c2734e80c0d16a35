use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

#[tokio::test]
async fn small_writes_leave_together_when_flushed() {
    let (near, mut far) = tokio::io::duplex(1 << 20);
    let mut wire = Wire::new(near);
    assert!(!wire.is_write_vectored());
    wire.write_all(b"one").await.expect("taken");
    wire.write_all(b"two").await.expect("taken");
    assert_eq!((wire.gauge().taken(), wire.gauge().offered()), (6, 0));
    wire.flush().await.expect("flushed");
    assert_eq!(wire.gauge().offered(), 6);
    let mut got = [0; 6];
    far.read_exact(&mut got).await.expect("arrived");
    assert_eq!(&got, b"onetwo");
}

#[tokio::test]
async fn what_came_after_a_stuck_write_is_not_offered() {
    let (near, _far) = tokio::io::duplex(10);
    let mut wire = Wire::new(near);
    wire.write_all(&[1; 100]).await.expect("taken");
    let flushed = futures_util::poll!(std::pin::pin!(wire.flush()));
    assert!(flushed.is_pending());
    let opened_at = wire.gauge().taken();
    wire.write_all(&[2; 100]).await.expect("taken");
    assert!(opened_at >= wire.gauge().offered());
}

#[tokio::test]
async fn a_write_larger_than_the_buffer_arrives_whole() {
    let (near, mut far) = tokio::io::duplex(4 << 20);
    let mut wire = Wire::new(near);
    let sent: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
    wire.write_all(&sent).await.expect("taken");
    wire.shutdown().await.expect("flushed");
    let mut got = Vec::new();
    far.read_to_end(&mut got).await.expect("arrived");
    assert_eq!(got, sent);
}

#[tokio::test]
async fn a_deaf_wire_writes_and_reads_nothing() {
    let (near, mut far) = tokio::io::duplex(100);
    let mut wire = Wire::new(near);
    far.write_all(b"settings").await.expect("taken");
    wire.gauge().set_deaf(true);
    wire.write_all(b"stream").await.expect("taken");
    wire.flush().await.expect("flushed");
    let mut got = [0; 8];
    assert!(futures_util::poll!(std::pin::pin!(wire.read_exact(&mut got))).is_pending());
    wire.gauge().set_deaf(false);
    wire.read_exact(&mut got).await.expect("arrived");
    assert_eq!((&got, wire.gauge().read()), (b"settings", 8));
    far.read_exact(&mut got[..6]).await.expect("arrived");
    assert_eq!(&got[..6], b"stream");
}
