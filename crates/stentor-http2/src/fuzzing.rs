//! The way in for fuzz targets: what a peer may say to a connection with requests under way.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::time::Instant;

use crate::batch::{Batch, Keep, Request};
use crate::connection::mux::Mux;
use crate::fault::Fault;
use crate::frame::kind;
use crate::hpack::Field;
use crate::limits::Limits;
use crate::work::{Run, Work};

/// Bodies of the requests that are under way: small, larger than a hostile window, larger than a frame.
const BODIES_BYTES: [usize; 3] = [1, 100, 20_000];

/// Lets a peer say `bytes` in pieces of `piece` bytes, and checks that every request has ended once in the end.
///
/// # Panics
///
/// When one has not, which is what a fuzz target looks for.
pub fn hear(bytes: &[u8], piece: usize, keep: Keep) {
    let mut mux = Mux::new(&Limits::default());
    let mut settings = Vec::new();
    crate::frame::write(kind::SETTINGS, 0, 0, &[], &mut settings);
    let _ = mux.receive(&settings);
    let mut run = run(keep);
    let batch = mux.enlist(&run.work, BODIES_BYTES.len() as u32);
    mux.open(batch, &mut run, 0, usize::MAX, |_, _| {});
    let mut held = Vec::new();
    for part in bytes.chunks(piece.max(1)) {
        held.extend_from_slice(part);
        let Ok(used) = mux.receive(&held) else { break };
        held.drain(..used);
        mux.note_taken(mux.out.len());
        mux.out.clear();
    }
    mux.end_all(&Fault::Closed);
    let mut ended = Vec::new();
    mux.take_ended(&mut ended);
    let mut indices: Vec<u32> = ended.iter().map(|ended| ended.open.index).collect();
    indices.sort_unstable();
    assert!(indices.iter().copied().eq(0..BODIES_BYTES.len() as u32), "ended: {indices:?}");
}

fn run(keep: Keep) -> Run {
    let request = |length: usize| Request {
        path: PathAndQuery::from_static("/"),
        headers: Vec::new(),
        body: Bytes::from(vec![b'b'; length]),
    };
    let requests: Vec<Request> = BODIES_BYTES.map(request).into();
    let batch =
        Batch { constant: Vec::new(), path: None, requests: Arc::new(requests), start_within: None, keep };
    let method = Field { name: b":method".to_vec(), value: b"POST".to_vec(), repeats: true };
    let work = Work::new(batch, &[method], Instant::now() + Duration::from_secs(60));
    Run { to: work.count, work, from: 0, resends: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_answers_one_request_and_leaves_ends_them_all() {
        hear(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88], 3, Keep::Refusals);
    }
}
