use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;

/// No test takes long; a task that is never woken would wait forever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects: the runtime watches the far end, the poller the near end.
async fn pair(poller: &SocketPoller) -> (TcpStream, PolledStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    let (far, near) = tokio::join!(TcpStream::connect(address), listener.accept());
    (far.expect("connected"), poller.watch(near.expect("accepted").0).expect("watched"))
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("woken")
}

fn known(poller: &SocketPoller) -> usize {
    poller.sockets.by_file().iter().flatten().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_both_ways_arrives_whole_however_little_finds_room() {
    let poller = SocketPoller::start().expect("started");
    let (far, near) = pair(&poller).await;
    let said: Vec<u8> = (0..8_000_000_u32).map(|place| (place * 31 + place / 251) as u8).collect();
    let (mut far_reads, mut far_writes) = tokio::io::split(far);
    let (mut near_reads, mut near_writes) = tokio::io::split(near);
    let (mut up, mut down) = (vec![0; said.len()], vec![0; said.len()]);
    let whole = async {
        tokio::join!(
            far_writes.write_all(&said),
            near_writes.write_all(&said),
            near_reads.read_exact(&mut up),
            far_reads.read_exact(&mut down),
        )
    };
    let (up_written, down_written, up_read, down_read) = soon(whole).await;
    assert!(up_written.is_ok() && down_written.is_ok() && up_read.is_ok() && down_read.is_ok());
    assert!(up == said && down == said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_word_is_missed_between_many_that_ask_and_answer_at_once() {
    let poller = SocketPoller::start().expect("started");
    let mut talks = Vec::new();
    for _ in 0..64 {
        let (mut far, mut near) = pair(&poller).await;
        talks.push(tokio::spawn(async move {
            let mut word = [0; 3];
            for _ in 0..200 {
                far.write_all(b"ask").await.expect("written");
                near.read_exact(&mut word).await.expect("read");
                near.write_all(b"yes").await.expect("written");
                far.read_exact(&mut word).await.expect("read");
            }
        }));
    }
    for talk in talks {
        soon(talk).await.expect("no word is missed");
    }
    assert_eq!(known(&poller), 0);
}

#[tokio::test]
async fn an_end_that_comes_with_the_last_word_is_found_behind_it() {
    let poller = SocketPoller::start().expect("started");
    let (mut far, mut near) = pair(&poller).await;
    far.write_all(b"last").await.expect("written");
    far.shutdown().await.expect("ended");
    let mut word = [0; 16];
    // Both arrive before the first read and are reported with one event.
    while !lock(&near.readiness).is_over {
        tokio::task::yield_now().await;
    }
    assert_eq!(soon(near.read(&mut word)).await.expect("read"), 4);
    assert_eq!(soon(near.read(&mut word)).await.expect("an end"), 0);
    near.write_all(b"answer").await.expect("the other way is open");
    drop(near);
    let mut came = Vec::new();
    soon(far.read_to_end(&mut came)).await.expect("an end");
    assert_eq!(came, b"answer");
}

#[tokio::test]
async fn whoever_waits_is_woken_when_the_other_side_is_gone_and_a_socket_that_is_dropped_is_forgotten() {
    let poller = SocketPoller::start().expect("started");
    let (far, mut near) = pair(&poller).await;
    let (_, other) = pair(&poller).await;
    assert_eq!(known(&poller), 2);
    let mut space = [0; 1];
    let mut reading = Box::pin(near.read(&mut space));
    assert!(futures_util::poll!(&mut reading).is_pending());
    drop(far);
    assert_eq!(soon(reading).await.expect("an end"), 0);
    drop((near, other));
    assert_eq!(known(&poller), 0);
}
