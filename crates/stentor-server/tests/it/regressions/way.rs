//! A link of limited bandwidth between a server and its push service.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Bytes sent together.
const PARCEL_BYTES: usize = 4 * 1_024;

/// Opens a link to an address on which all connections together carry this number of bytes per second in each direction; returns the link's
/// own address.
pub(super) async fn narrow_way(to: SocketAddr, bytes_per_second: u64) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (up, down) = (Pace::new(bytes_per_second), Pace::new(bytes_per_second));
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(to).await.expect("the push service");
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            tokio::spawn(carry(near_in, far_out, up.clone()));
            tokio::spawn(carry(far_in, near_out, down.clone()));
        }
    });
    address
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, pace: Pace) {
    let mut parcel = vec![0; PARCEL_BYTES];
    while let Ok(count @ 1..) = from.read(&mut parcel).await {
        tokio::time::sleep_until(pace.book(count)).await;
        if to.write_all(&parcel[..count]).await.is_err() {
            return;
        }
    }
}

/// The time at which one direction of the link is free again, shared by its connections.
#[derive(Clone)]
struct Pace {
    bytes_per_second: u64,
    free_at: Arc<Mutex<Instant>>,
}

impl Pace {
    fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, free_at: Arc::new(Mutex::new(Instant::now())) }
    }

    /// Books the link for a number of bytes; returns their time of arrival.
    fn book(&self, bytes: usize) -> Instant {
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let mut free_at = self.free_at.lock().expect("sound");
        *free_at = (*free_at).max(Instant::now()) + takes;
        *free_at
    }
}
