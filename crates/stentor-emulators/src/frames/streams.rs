//! The streams of a connection that are read, or wait for a window. Their places, with all buffers in them, are used again
//! and again.

use super::head::Head;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use stentor_http2_codec::frame::WINDOW_DEFAULT_BYTES;

/// One open stream.
pub(super) struct OpenStream<D> {
    pub(super) id: u32,
    pub(super) draft: D,
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    pub(super) body_bytes: u64,
    /// Bytes that the peer may still send.
    pub(super) receive_window: u32,
    /// Bytes that we may still send; negative after the peer has shrunk the windows.
    pub(super) send_window: i64,
    pub(super) phase: StreamPhase,
    /// The part of the response's body that no window has allowed yet.
    pub(super) rest: Vec<u8>,
}

/// The event that a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamPhase {
    /// The rest of the request.
    Request,
    /// A window for the rest of the answer's body.
    Window,
}

/// Stream ids are all different already; a multiplication spreads them over the high bits, which choose the group.
#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// All such streams.
pub(super) struct StreamTable<D> {
    places: Vec<OpenStream<D>>,
    free: Vec<usize>,
    by_id: HashMap<u32, usize, BuildHasherDefault<IdHasher>>,
    /// The stream opened last, which is looked for first and mostly closed before the next one.
    latest: Option<(u32, usize)>,
}

impl<D: Default> StreamTable<D> {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), by_id: HashMap::default(), latest: None }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len() + usize::from(self.latest.is_some())
    }

    /// Opens a stream; its draft and buffers are left as the last user left them.
    #[inline]
    pub(super) fn open(&mut self, id: u32, send_window: i64) -> usize {
        if let Some((id, place)) = self.latest.take() {
            self.by_id.insert(id, place);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(OpenStream::new());
            self.places.len() - 1
        });
        self.places[place].begin(id, send_window);
        self.latest = Some((id, place));
        place
    }

    #[inline]
    pub(super) fn place(&self, id: u32) -> Option<usize> {
        match self.latest {
            Some((latest, place)) if latest == id => Some(place),
            _ => self.by_id.get(&id).copied(),
        }
    }

    #[inline]
    pub(super) fn at(&mut self, place: usize) -> &mut OpenStream<D> {
        &mut self.places[place]
    }

    pub(super) fn find(&mut self, id: u32) -> Option<&mut OpenStream<D>> {
        let place = self.place(id)?;
        Some(&mut self.places[place])
    }

    /// Closes a stream. Returns true if it was open.
    #[inline]
    pub(super) fn close(&mut self, id: u32) -> bool {
        let place = match self.latest {
            Some((latest, place)) if latest == id => {
                self.latest = None;
                Some(place)
            }
            _ => self.by_id.remove(&id),
        };
        self.free.extend(place);
        place.is_some()
    }

    /// Visits every open stream.
    pub(super) fn for_each(&mut self, mut visit: impl FnMut(&mut OpenStream<D>)) {
        let latest = self.latest.map(|(_, place)| place);
        for place in self.by_id.values().copied().chain(latest) {
            visit(&mut self.places[place]);
        }
    }
}

impl<D: Default> OpenStream<D> {
    fn new() -> Self {
        Self {
            id: 0,
            draft: D::default(),
            head: Head::default(),
            body: Vec::new(),
            body_bytes: 0,
            receive_window: 0,
            send_window: 0,
            phase: StreamPhase::Request,
            rest: Vec::new(),
        }
    }

    #[inline]
    fn begin(&mut self, id: u32, send_window: i64) {
        self.id = id;
        self.head = Head::default();
        self.body.clear();
        self.body_bytes = 0;
        self.receive_window = WINDOW_DEFAULT_BYTES;
        self.send_window = send_window;
        self.phase = StreamPhase::Request;
    }
}
