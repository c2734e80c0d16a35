use std::convert::Infallible;

use futures_util::stream::unfold;
use tokio::time::sleep;

use super::*;

const LIMITS: ReadTimeout = ReadTimeout {
    idle: Duration::from_secs(60),
    min_bytes_per_second: 1_024,
    total: Duration::from_secs(86_400),
};

/// A caller that sends a piece of this size after each pause.
fn caller(
    bytes: usize,
    pause: Duration,
    times: usize,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + Unpin {
    Box::pin(unfold(times, move |left| async move {
        sleep(pause).await;
        Some((Ok(Bytes::from(vec![b'\n'; bytes])), left.checked_sub(1)?))
    }))
}

/// Reads all pieces; returns the number of bytes, the elapsed time, and the final refusal.
async fn read(
    pieces: impl Stream<Item = Result<Bytes, Infallible>> + Send + Unpin,
    limits: ReadTimeout,
) -> (usize, Duration, Option<Problem>) {
    let (began, mut bytes) = (Instant::now(), 0);
    let mut pieces = Box::pin(with_timeout(pieces, limits));
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => bytes += piece.len(),
            Err(problem) => return (bytes, began.elapsed(), Some(problem)),
        }
    }
    (bytes, began.elapsed(), None)
}

#[tokio::test(start_paused = true)]
async fn a_byte_now_and_then_ends_after_the_idle_time() {
    for pause in [1, 10, 59] {
        let (_, took, problem) = read(caller(1, Duration::from_secs(pause), 10_000), LIMITS).await;
        let problem = problem.expect("refused");
        assert_eq!(problem.code, ErrorCode::RequestTimeout, "{problem}");
        assert!((60..=62).contains(&took.as_secs()), "a byte each {pause} seconds: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_line_goes_on_as_long_as_it_likes() {
    let (bytes, took, problem) = read(caller(20_480, Duration::from_secs(15), 2_000), LIMITS).await;
    assert_eq!((bytes, problem), (20_480 * 2_000, None));
    assert!(took >= Duration::from_secs(8 * 3_600), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn much_at_first_buys_no_long_silence() {
    let burst = Box::pin(futures_util::stream::iter([Ok(Bytes::from(vec![b'\n'; 100_000_000]))]));
    let (bytes, took, problem) = read(burst.chain(caller(1, Duration::from_secs(70), 1)), LIMITS).await;
    assert_eq!((bytes, problem.expect("refused").code), (100_000_000, ErrorCode::RequestTimeout));
    assert_eq!(took.as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_the_server_takes_does_not_count() {
    let pieces =
        Box::pin(futures_util::stream::iter((0..100).map(|_| Ok::<_, Infallible>(Bytes::from("x")))));
    let mut pieces = Box::pin(with_timeout(pieces, LIMITS));
    while let Some(piece) = pieces.next().await {
        assert!(piece.is_ok());
        sleep(Duration::from_secs(600)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_has_an_end_however_much_comes() {
    let limits = ReadTimeout { total: Duration::from_secs(600), ..LIMITS };
    let (_, took, problem) = read(caller(1_000_000, Duration::from_secs(10), 10_000), limits).await;
    assert_eq!((took.as_secs(), problem.expect("refused").code), (600, ErrorCode::RequestTimeout));
}
