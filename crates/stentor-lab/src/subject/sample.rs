//! Samples: 64 bytes for each exchange, little-endian, times in nanoseconds of the clock.

use super::SubjectError;
use std::path::{Path, PathBuf};

/// Bytes of a sample.
pub const SAMPLE_BYTES: usize = 64;
/// Numbers of eight bytes at the beginning of a sample.
const WORDS: usize = 7;

/// Flag: bytes were sent while they were still being written, so that neither phase has a time of its own.
pub const SENT_WHILE_WRITTEN: u16 = 1;
/// Flag: bytes were read while they were still being received.
pub const READ_WHILE_RECEIVED: u16 = 2;

/// The status of an exchange whose client had no memory left.
pub const STATUS_OUT_OF_MEMORY: u16 = 2;

/// An exchange as its client saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientSample {
    /// Its number, from 0.
    pub seq: u64,
    /// When it should have started.
    pub t_intended: i64,
    /// When it started.
    pub t_start: i64,
    /// When the request was bytes.
    pub t_ser_end: i64,
    /// When the first bytes of the answer were there.
    pub t_first_byte: i64,
    /// When all bytes were there.
    pub t_end: i64,
    /// When the answer was values.
    pub t_deser_end: i64,
    /// What came of it; 0 is an answer, 1 a failure, 2 a heap that was too small.
    pub status: u16,
    /// What blurs the phases: [`SENT_WHILE_WRITTEN`] for the request, [`READ_WHILE_RECEIVED`] for the answer.
    pub flags: u16,
    /// Bytes of the answer's body.
    pub bytes: u32,
}

/// An exchange as its server saw it: seq, received, request is values, work done, answer is bytes; then two words of zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerSample {
    /// Its number, from 0, in the order of arrival.
    pub seq: u64,
    /// When all bytes of the request were there.
    pub t_recv: i64,
    /// When the request was values.
    pub t_deser_end: i64,
    /// When the answer was known.
    pub t_work_end: i64,
    /// When the answer was bytes.
    pub t_ser_end: i64,
    /// What came of it; 0 is an answer.
    pub status: u16,
    /// What blurs the phases: [`SENT_WHILE_WRITTEN`] for the answer, [`READ_WHILE_RECEIVED`] for the request.
    pub flags: u16,
    /// Bytes of the request's body.
    pub bytes: u32,
}

impl ClientSample {
    /// Writes it.
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

    /// Reads it.
    #[must_use]
    pub fn of_bytes(bytes: &[u8; SAMPLE_BYTES]) -> Self {
        let ([seq, t_intended, t_start, t_ser_end, t_first_byte, t_end, t_deser_end], status, flags, bytes) =
            unpack(bytes);
        let seq = seq.cast_unsigned();
        Self { seq, t_intended, t_start, t_ser_end, t_first_byte, t_end, t_deser_end, status, flags, bytes }
    }

    /// Returns whether its times follow each other.
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
    /// Writes it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SAMPLE_BYTES] {
        let seq = self.seq.cast_signed();
        let words = [seq, self.t_recv, self.t_deser_end, self.t_work_end, self.t_ser_end, 0, 0];
        pack(words, self.status, self.flags, self.bytes)
    }

    /// Reads it.
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

/// Names the file beside a client's samples that tells when rows were kept: eight bytes for each sample.
#[must_use]
pub fn inserted(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".inserted");
    name.into()
}

/// Reads times of eight bytes each; no file is no times.
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
