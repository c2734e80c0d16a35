//! Samples: 64 bytes per exchange, little-endian, times in nanoseconds of the clock.

use super::SubjectError;
use std::path::{Path, PathBuf};

/// Bytes of a sample.
pub const SAMPLE_BYTES: usize = 64;
/// Words of eight bytes at the beginning of a sample.
const WORDS: usize = 7;

/// Flag: bytes were sent while serialization went on, so that these phases have no separate times.
pub const SENT_WHILE_WRITTEN: u16 = 1;
/// Flag: bytes were decoded while they were still being received.
pub const READ_WHILE_RECEIVED: u16 = 2;

/// The status of an exchange that failed because the client ran out of memory.
pub const STATUS_OUT_OF_MEMORY: u16 = 2;

/// An exchange, as seen by its client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientSample {
    /// Its number, from 0.
    pub seq: u64,
    /// Intended start.
    pub t_intended: i64,
    /// Actual start.
    pub t_start: i64,
    /// End of the request's serialization.
    pub t_ser_end: i64,
    /// Arrival of the response's first bytes.
    pub t_first_byte: i64,
    /// Arrival of all bytes.
    pub t_end: i64,
    /// End of the response's deserialization.
    pub t_deser_end: i64,
    /// The status: 0 is a response, 1 a failure, 2 a heap that was too small.
    pub status: u16,
    /// Flags of blurred phases: [`SENT_WHILE_WRITTEN`] for the request, [`READ_WHILE_RECEIVED`] for the response.
    pub flags: u16,
    /// Bytes of the response's body.
    pub bytes: u32,
}

/// An exchange, as seen by its server: number, request received, request deserialized, work done, response serialized; then two words of
/// zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerSample {
    /// Its number, from 0, in the order of arrival.
    pub seq: u64,
    /// Arrival of all bytes of the request.
    pub t_recv: i64,
    /// End of the request's deserialization.
    pub t_deser_end: i64,
    /// End of the work.
    pub t_work_end: i64,
    /// End of the response's serialization.
    pub t_ser_end: i64,
    /// The status; 0 is a response.
    pub status: u16,
    /// Flags of blurred phases: [`SENT_WHILE_WRITTEN`] for the response, [`READ_WHILE_RECEIVED`] for the request.
    pub flags: u16,
    /// Bytes of the request's body.
    pub bytes: u32,
}

impl ClientSample {
    /// Encodes the sample.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SAMPLE_BYTES] {
        let words = [
            self.seq.cast_signed(),
            self.t_intended,
            self.t_start,
            self.t_ser_end,
            self.t_first_byte,
            self.t_end,
            self.t_deser_end,
        ];
        pack(words, self.status, self.flags, self.bytes)
    }

    /// Decodes a sample.
    #[must_use]
    pub fn of_bytes(bytes: &[u8; SAMPLE_BYTES]) -> Self {
        let ([seq, t_intended, t_start, t_ser_end, t_first_byte, t_end, t_deser_end], status, flags, bytes) =
            unpack(bytes);
        let seq = seq.cast_unsigned();
        Self { seq, t_intended, t_start, t_ser_end, t_first_byte, t_end, t_deser_end, status, flags, bytes }
    }

    /// Returns true if its times are in order.
    #[must_use]
    pub const fn is_in_order(&self) -> bool {
        self.t_start > 0
            && self.t_start <= self.t_ser_end
            && self.t_ser_end <= self.t_first_byte
            && self.t_first_byte <= self.t_end
            && self.t_end <= self.t_deser_end
    }
}

impl ServerSample {
    /// Encodes the sample.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SAMPLE_BYTES] {
        let seq = self.seq.cast_signed();
        let words = [seq, self.t_recv, self.t_deser_end, self.t_work_end, self.t_ser_end, 0, 0];
        pack(words, self.status, self.flags, self.bytes)
    }

    /// Decodes a sample.
    #[must_use]
    pub fn of_bytes(bytes: &[u8; SAMPLE_BYTES]) -> Self {
        let ([seq, t_recv, t_deser_end, t_work_end, t_ser_end, ..], status, flags, bytes) = unpack(bytes);
        Self { seq: seq.cast_unsigned(), t_recv, t_deser_end, t_work_end, t_ser_end, status, flags, bytes }
    }
}

/// Reads the samples of a client.
pub fn read_client(path: &Path) -> Result<Vec<ClientSample>, SubjectError> {
    read(path, ClientSample::of_bytes)
}

/// Reads the samples of a server.
pub fn read_server(path: &Path) -> Result<Vec<ServerSample>, SubjectError> {
    read(path, ServerSample::of_bytes)
}

fn read<S>(path: &Path, of_bytes: fn(&[u8; SAMPLE_BYTES]) -> S) -> Result<Vec<S>, SubjectError> {
    let bytes = std::fs::read(path).map_err(SubjectError::io(format!("{}", path.display())))?;
    let (samples, rest) = bytes.as_chunks::<SAMPLE_BYTES>();
    if !rest.is_empty() {
        return Err(SubjectError::Wrong(format!("{} bytes of samples are no multiple of 64", bytes.len())));
    }
    Ok(samples.iter().map(of_bytes).collect())
}

/// Returns the path of the file beside a client's samples with the insertion times of rows: eight bytes per sample.
#[must_use]
pub fn inserted(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".inserted");
    name.into()
}

/// Reads times of eight bytes each; a missing file counts as empty.
pub fn read_times(path: &Path) -> Result<Vec<i64>, SubjectError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SubjectError::io(format!("{}", path.display()))(error)),
    };
    let (times, _) = bytes.as_chunks::<8>();
    Ok(times.iter().map(|time| i64::from_le_bytes(*time)).collect())
}

fn pack(words: [i64; WORDS], status: u16, flags: u16, count: u32) -> [u8; SAMPLE_BYTES] {
    let mut bytes = [0; SAMPLE_BYTES];
    let (places, _) = bytes.as_chunks_mut::<8>();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    bytes[56..58].copy_from_slice(&status.to_le_bytes());
    bytes[58..60].copy_from_slice(&flags.to_le_bytes());
    bytes[60..64].copy_from_slice(&count.to_le_bytes());
    bytes
}

fn unpack(bytes: &[u8; SAMPLE_BYTES]) -> ([i64; WORDS], u16, u16, u32) {
    let (places, _) = bytes.as_chunks::<8>();
    let words = std::array::from_fn(|place| i64::from_le_bytes(places[place]));
    let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    (words, short(56), short(58), u32::from_le_bytes([bytes[60], bytes[61], bytes[62], bytes[63]]))
}
