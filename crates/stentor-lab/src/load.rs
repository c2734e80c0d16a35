//! Load on one HTTP/2 server: pushes shaped like Apple's, each to a token of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use stentor_http2::{Client, Fault, Keep, Limits, Line, Replies, Reply, RequestBatch, Requests};
pub use stentor_http2::{Endpoint, Roots};

/// Requests handed to the client at a time, like the chunks of the pipeline.
const BATCH_REQUESTS: u64 = 1_000;
/// Digits of a device token.
const TOKEN_DIGITS: usize = 64;
/// A payload of the usual size: 259 bytes.
const PAYLOAD: &str = concat!(
    r#"{"aps":{"alert":{"title":"Stentor","body":"One request, every device."},"sound":"default"},"#,
    r#""campaign":"camp_0000000000000","data":{"kind":"benchmark","note":"as long as an ordinary message, "#,
    r#"no longer and no shorter, so that bytes compare. "},"text":"stentor"}"#
);

/// The parameters of a load.
#[derive(Debug, Clone)]
pub struct LoadSpec {
    /// The server.
    pub endpoint: Endpoint,
    /// Requests in all, each to a token of its own.
    pub requests: u64,
    /// Parallel connections.
    pub connections: usize,
    /// Requests in flight on each connection.
    pub streams: usize,
}

/// The result of a load.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct LoadResult {
    /// Responses with status 200.
    pub succeeded: u64,
    /// All other responses.
    pub failed: u64,
    /// Time from the first request to the last response.
    pub wall_seconds: f64,
}

impl LoadSpec {
    /// Returns the path of request `number`; paths are unique.
    #[must_use]
    pub fn path(number: u64) -> String {
        let mut digits = [b'0'; TOKEN_DIGITS];
        write_token(number, &mut digits);
        format!("/3/device/{}", String::from_utf8_lossy(&digits))
    }

    /// Returns the headers of every request.
    #[must_use]
    pub fn headers() -> Vec<(HeaderName, HeaderValue)> {
        let pair = |name, value| (HeaderName::from_static(name), HeaderValue::from_static(value));
        vec![
            pair("authorization", BEARER),
            pair("apns-topic", "com.example.app"),
            pair("apns-push-type", "alert"),
            pair("apns-priority", "10"),
            pair("apns-expiration", "1900000000"),
        ]
    }

    /// Returns the body of every request.
    #[must_use]
    pub const fn body() -> &'static str {
        PAYLOAD
    }

    /// Sends all requests. Fails if the endpoint cannot be used.
    pub async fn run(&self) -> Result<LoadResult, Fault> {
        let client = Arc::new(Client::new(&self.endpoint, self.limits())?);
        self.open(&client).await;
        let began = Instant::now();
        let mut batches = tokio::task::JoinSet::new();
        let (mut outcome, mut next) = (LoadResult::default(), 0);
        // Enough batches to fill every stream twice, so that no stream waits for the next batch.
        let most = (2 * self.connections * self.streams).div_ceil(BATCH_REQUESTS as usize) + 1;
        while next < self.requests || !batches.is_empty() {
            while next < self.requests && batches.len() < most {
                let to = (next + BATCH_REQUESTS).min(self.requests);
                let client = Arc::clone(&client);
                let batch = batch(next, to);
                batches.spawn(async move { count(&client.send_until(batch, std::future::pending()).await) });
                next = to;
            }
            if let Some(Ok((succeeded, failed))) = batches.join_next().await {
                outcome.succeeded += succeeded;
                outcome.failed += failed;
            }
        }
        outcome.wall_seconds = began.elapsed().as_secs_f64();
        client.close().await;
        Ok(outcome)
    }

    /// Opens every connection before the clock starts; other load generators exclude connection setup too.
    async fn open(&self, client: &Client) {
        client.warm();
        let patience = Instant::now() + Duration::from_secs(5);
        while client.stats().connections == 0 && Instant::now() < patience {
            tokio::task::yield_now().await;
        }
    }

    fn limits(&self) -> Limits {
        let inflight = self.connections * self.streams;
        Limits {
            max_connections: self.connections,
            max_streams_per_connection: self.streams,
            initial_inflight_requests: inflight,
            max_inflight_requests: inflight,
            ..Limits::default()
        }
    }
}

/// A provider token in the form of Apple's; the sink does not read it.
const BEARER: &str = "bearer eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ.eyJpc3MiOiJERUYxMjNHSElKIiwiaWF0Ijox\
    NzYzNzMwMDAwfQ.3bFLmS4wUoZ0V9sEoAaDq1k0bq9yF6rJd2Yw8hTn5vXkQeRzCpGiMuLxOtBsNfWlVyKaHjUdPmTgIrEoQcZxYA";

/// Requests `from..to`.
struct Numbered {
    from: u64,
    to: u64,
}

impl Requests for Numbered {
    fn count(&self) -> usize {
        (self.to - self.from) as usize
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        let mut digits = [b'0'; TOKEN_DIGITS];
        write_token(self.from + index as u64, &mut digits);
        line.path(&[b"/3/device/", &digits]);
        line.body(&[PAYLOAD.as_bytes()]);
    }
}

fn batch(from: u64, to: u64) -> RequestBatch {
    let (constant, path): (_, Option<PathAndQuery>) = (LoadSpec::headers(), None);
    RequestBatch {
        constant,
        path,
        requests: Arc::new(Numbered { from, to }),
        start_within: None,
        repeated: false,
        keep: Keep::Refusals,
    }
}

/// Spreads the number over all digits, so that tokens look random like real ones.
fn write_token(number: u64, digits: &mut [u8; TOKEN_DIGITS]) {
    let mut state = number;
    for (part, block) in digits.chunks_exact_mut(16).enumerate() {
        // Each step is a bijection of the number, so tokens are unique.
        state = state.wrapping_add(part as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        state ^= state >> 32;
        for (at, digit) in block.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(state >> (4 * at)) as usize & 0xf];
        }
    }
}

fn count(replies: &Replies) -> (u64, u64) {
    let failed = |reply: &Reply| !matches!(reply, Reply::Answered(response) if response.status == 200);
    let bad = replies.others().filter(|(_, reply)| failed(reply)).count() as u64;
    (replies.len() as u64 - bad, bad)
}

#[cfg(test)]
mod tests;
