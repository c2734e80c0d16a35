//! Separates an application's bytes into payload and framing. Understands HTTP/1 and TLS records.

/// Bytes of a head, or of a line between chunks, that are looked at; longer ones are no HTTP.
const HEAD_MAX_BYTES: usize = 64 << 10;
/// The longest method of HTTP/1 that is known here.
const METHOD_MAX_BYTES: usize = 8;
const RECORD_HEADER_BYTES: usize = 5;
const TLS_APPLICATION_DATA: u8 = 23;

/// Bytes of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ContentBytes {
    pub(super) framing: u64,
    pub(super) tls: u64,
    pub(super) payload: u64,
}

/// The bytes of one direction of a connection, read as they come.
#[derive(Clone, Debug, Default)]
pub(super) struct ContentReader {
    state: ContentState,
    /// The beginning of a head, a line or a record that is not complete yet; counted as framing already.
    pending: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ContentState {
    /// Nothing is known yet.
    #[default]
    Beginning,
    /// In the head of a message.
    Head,
    /// The number of body bytes left.
    Body(u64),
    /// In the size line before a chunk.
    ChunkSize,
    /// The number of chunk bytes left; a line end follows.
    Chunk(u64),
    /// In the line end after a chunk.
    ChunkEnd,
    /// In the trailer after the last chunk.
    Trailer,
    /// In the header of a TLS record.
    Record,
    /// The number of bytes left of a TLS record.
    RecordBody { left: u64, is_application: bool },
    /// All the rest is payload.
    Opaque,
}

impl ContentReader {
    /// Reads on.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> ContentBytes {
        let mut kinds = ContentBytes::default();
        while !bytes.is_empty() {
            let used = self.step(bytes, &mut kinds);
            bytes = &bytes[used..];
        }
        kinds
    }

    /// Stops to understand: a piece is missing.
    pub(super) fn lose_track(&mut self) {
        *self = Self { state: ContentState::Opaque, pending: Vec::new() };
    }

    /// Reads some bytes and returns their number. It is 0 only in the beginning state, which is left then.
    fn step(&mut self, bytes: &[u8], kinds: &mut ContentBytes) -> usize {
        match self.state {
            ContentState::Beginning => self.begin(bytes),
            ContentState::Head
                if self.pending.is_empty() && bytes.len() > METHOD_MAX_BYTES && !looks_like_http(bytes) =>
            {
                // Another protocol took over, as after an upgrade.
                self.lose_track();
                self.step(bytes, kinds)
            }
            ContentState::Head => self.line_end(bytes, b"\r\n\r\n", kinds, body_of),
            ContentState::ChunkSize => self.line_end(bytes, b"\r\n", kinds, chunk_of),
            ContentState::ChunkEnd => self.line_end(bytes, b"\r\n", kinds, |_| ContentState::ChunkSize),
            ContentState::Trailer => self.line_end(bytes, b"\r\n", kinds, |line| match line {
                b"\r\n" => ContentState::Head,
                _ => ContentState::Trailer,
            }),
            ContentState::Record => self.record(bytes, kinds),
            ContentState::Body(left) => {
                self.run(bytes, left, &mut kinds.payload, ContentState::Body, ContentState::Head)
            }
            ContentState::Chunk(left) => {
                self.run(bytes, left, &mut kinds.payload, ContentState::Chunk, ContentState::ChunkEnd)
            }
            ContentState::RecordBody { left, is_application } => {
                let kind = if is_application { &mut kinds.payload } else { &mut kinds.tls };
                let on = |left| ContentState::RecordBody { left, is_application };
                self.run(bytes, left, kind, on, ContentState::Record)
            }
            ContentState::Opaque => {
                kinds.payload += bytes.len() as u64;
                bytes.len()
            }
        }
    }

    /// Detects the protocol without consuming a byte.
    fn begin(&mut self, bytes: &[u8]) -> usize {
        self.state = match bytes {
            [20..=23, 3, ..] => ContentState::Record,
            _ if looks_like_http(bytes) => ContentState::Head,
            _ => ContentState::Opaque,
        };
        0
    }

    /// Reads up to and including an end mark. `next` gives the state that follows.
    fn line_end(
        &mut self,
        bytes: &[u8],
        end: &[u8],
        kinds: &mut ContentBytes,
        next: impl Fn(&[u8]) -> ContentState,
    ) -> usize {
        let before = self.pending.len();
        self.pending.extend_from_slice(bytes);
        // The mark may have begun in the bytes before.
        let from = before.saturating_sub(end.len() - 1);
        let found = self.pending[from..].windows(end.len()).position(|window| window == end);
        let Some(position) = found else {
            kinds.framing += bytes.len() as u64;
            if self.pending.len() > HEAD_MAX_BYTES {
                self.lose_track();
            }
            return bytes.len();
        };
        let used = from + position + end.len() - before;
        kinds.framing += used as u64;
        self.state = next(&self.pending[..before + used]);
        self.pending.clear();
        used
    }

    fn record(&mut self, bytes: &[u8], kinds: &mut ContentBytes) -> usize {
        let used = bytes.len().min(RECORD_HEADER_BYTES - self.pending.len());
        self.pending.extend_from_slice(&bytes[..used]);
        kinds.framing += used as u64;
        if let [kind, _, _, high, low] = self.pending[..] {
            let left = u64::from(u16::from_be_bytes([high, low]));
            let is_application = kind == TLS_APPLICATION_DATA;
            self.state = if left == 0 {
                ContentState::Record
            } else {
                ContentState::RecordBody { left, is_application }
            };
            self.pending.clear();
        }
        used
    }

    fn run(
        &mut self,
        bytes: &[u8],
        left: u64,
        kind: &mut u64,
        on: impl Fn(u64) -> ContentState,
        then: ContentState,
    ) -> usize {
        let used = (bytes.len() as u64).min(left);
        *kind += used;
        self.state = if used == left { then } else { on(left - used) };
        used as usize
    }
}

/// Returns true for the beginning of an HTTP/1 request or response: a version, or a method in capitals and a space.
fn looks_like_http(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"HTTP/1.") {
        return true;
    }
    // HTTP/2 begins with a method that no HTTP/1 has.
    let method = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    (3..=METHOD_MAX_BYTES).contains(&method)
        && bytes.get(method) == Some(&b' ')
        && !bytes.starts_with(b"PRI ")
}

/// Returns the state that follows a head.
fn body_of(head: &[u8]) -> ContentState {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let start = lines.next().unwrap_or_default();
    let mut length = None;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("transfer-encoding") && value.to_ascii_lowercase().contains("chunked") {
            return ContentState::ChunkSize;
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    let status = start.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    let has_no_body = |status: &str| status.starts_with('1') || status == "204" || status == "304";
    match (length, status) {
        (Some(0), _) => ContentState::Head,
        (Some(length), status) if !status.is_some_and(has_no_body) => ContentState::Body(length),
        (None, Some(status)) if !has_no_body(status) => ContentState::Opaque,
        _ => ContentState::Head,
    }
}

/// Returns the state that follows the size line of a chunk.
fn chunk_of(line: &[u8]) -> ContentState {
    let text = String::from_utf8_lossy(line);
    let digits = text.split([';', '\r']).next().unwrap_or_default().trim();
    match u64::from_str_radix(digits, 16) {
        Ok(0) => ContentState::Trailer,
        Ok(length) => ContentState::Chunk(length),
        Err(_) => ContentState::Opaque,
    }
}

#[cfg(test)]
mod tests;
