//! The observer's file: its layout, how it is made, opened again and read by others.
//!
//! Page 0 names the format and the geometry. Then follow the shards: one page of sums, then the slots.

use super::table::{self, SLOT_BYTES};
use super::{Counts, ObserverTotals, token_hash};
use crate::error::EmulatorError;
use memmap2::{MmapMut, MmapOptions};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"STNTROBS";
const VERSION: u64 = 1;
const PAGE_BYTES: usize = 4096;
const OVERFLOW_AT: usize = 48;
const MANY_SHARDS: u64 = 16;
const MANY_TOKENS: u64 = 50_000;
const MAX_CAPACITY_TOKENS: u64 = 1 << 32;

/// The number of shards and of slots per shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    shards: u64,
    slots_per_shard: u64,
    capacity_tokens: u64,
}

impl Geometry {
    /// Leaves a third of the slots free, so that probing stays short in every shard.
    pub(super) fn for_capacity(tokens: u64) -> Self {
        let capacity_tokens = tokens.clamp(1, MAX_CAPACITY_TOKENS);
        let shards = if capacity_tokens >= MANY_TOKENS { MANY_SHARDS } else { 1 };
        let slots_per_shard = (capacity_tokens * 3).div_ceil(2 * shards) + 8;
        Self { shards, slots_per_shard, capacity_tokens }
    }

    /// Returns the number of tokens that a shard takes before it overflows (with room for an uneven spread).
    pub(super) fn tokens_per_shard(self) -> u64 {
        if self.shards == 1 { self.capacity_tokens } else { self.slots_per_shard * 9 / 10 }
    }

    fn shard_bytes(self) -> usize {
        PAGE_BYTES + (self.slots_per_shard as usize * SLOT_BYTES).next_multiple_of(PAGE_BYTES)
    }

    fn file_bytes(self) -> usize {
        PAGE_BYTES + self.shards as usize * self.shard_bytes()
    }

    fn header(self) -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        page[..8].copy_from_slice(MAGIC);
        for (field, value) in
            [VERSION, self.shards, self.slots_per_shard, self.capacity_tokens].into_iter().enumerate()
        {
            page[8 + field * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        page
    }

    fn from_header(page: &[u8]) -> Result<Self, String> {
        if page.get(..8) != Some(MAGIC) {
            return Err("not an observer file".to_owned());
        }
        let [version, shards, slots_per_shard, capacity_tokens] = [8, 16, 24, 32].map(|at| number(page, at));
        if version != VERSION {
            return Err(format!("format version {version}, this program reads {VERSION}"));
        }
        let expected = Self::for_capacity(capacity_tokens);
        let found = Self { shards, slots_per_shard, capacity_tokens };
        if found == expected { Ok(found) } else { Err("its header contradicts itself".to_owned()) }
    }
}

/// Returns the shard of a hash; slots are chosen by other bits.
pub(super) fn shard_of(hash: u64, shards: usize) -> usize {
    (hash >> 48) as usize % shards
}

/// The mapped bytes of one shard.
pub(super) struct Mapping {
    map: MmapMut,
    slot_bytes: usize,
}

impl Mapping {
    fn new(map: MmapMut, geometry: Geometry) -> Self {
        Self { map, slot_bytes: geometry.slots_per_shard as usize * SLOT_BYTES }
    }

    pub(super) fn slots_mut(&mut self) -> &mut [u8] {
        &mut self.map[PAGE_BYTES..][..self.slot_bytes]
    }

    pub(super) fn overflow(&self) -> u64 {
        number(&self.map, OVERFLOW_AT)
    }

    pub(super) fn write_sums(&mut self, sums: &ObserverTotals) {
        let fields = [
            sums.tokens,
            sums.attempts,
            sums.accepted,
            sums.rejected,
            sums.validate_only,
            sums.tokens_accepted_twice,
            sums.overflow,
        ];
        for (bytes, field) in self.map[..PAGE_BYTES].chunks_exact_mut(8).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
    }
}

type OpenedObserver = (Geometry, Option<File>, Vec<Mapping>);

/// Opens the file, or makes it; a file that exists keeps its own geometry.
pub(super) fn open(path: &Path, wanted: Geometry) -> Result<OpenedObserver, EmulatorError> {
    let fail = |reason: String| EmulatorError::Observer { path: path.to_owned(), reason };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|source| EmulatorError::file(path, source))?;
    // The lock ends with its process, with one that was killed too.
    file.try_lock().map_err(|_| fail("in use by another emulator".to_owned()))?;
    let geometry = settle_geometry(&mut file, wanted).map_err(&fail)?;
    if geometry.capacity_tokens < wanted.capacity_tokens {
        let (has, wanted_tokens) = (geometry.capacity_tokens, wanted.capacity_tokens);
        return Err(fail(format!(
            "made for {has} tokens, but {wanted_tokens} are needed: remove the file or request fewer"
        )));
    }
    let mappings = (0..geometry.shards as usize)
        .map(|shard| map_shard(&file, geometry, shard))
        .collect::<Result<_, _>>()
        .map_err(|error| fail(error.to_string()))?;
    Ok((geometry, Some(file), mappings))
}

/// Creates the same shards in memory only.
pub(super) fn anonymous(geometry: Geometry) -> Result<Vec<Mapping>, EmulatorError> {
    let map = |_| Ok(Mapping::new(MmapMut::map_anon(geometry.shard_bytes())?, geometry));
    (0..geometry.shards)
        .map(map)
        .collect::<std::io::Result<_>>()
        .map_err(|source| EmulatorError::file("(memory)", source))
}

fn settle_geometry(file: &mut File, wanted: Geometry) -> Result<Geometry, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if length == 0 {
        // The header comes last: a process that is killed in between leaves zeros, which are known below.
        file.set_len(wanted.file_bytes() as u64).map_err(|error| error.to_string())?;
        file.write_all(&wanted.header()).map_err(|error| error.to_string())?;
        return Ok(wanted);
    }
    let mut page = [0; PAGE_BYTES];
    file.read_exact(&mut page).map_err(|error| error.to_string())?;
    if page.iter().all(|byte| *byte == 0) && length == wanted.file_bytes() as u64 {
        // Killed between making the file and naming it: nothing was counted yet.
        std::io::Seek::rewind(file)
            .and_then(|()| file.write_all(&wanted.header()))
            .map_err(|e| e.to_string())?;
        return Ok(wanted);
    }
    let found = Geometry::from_header(&page)?;
    if length == found.file_bytes() as u64 { Ok(found) } else { Err("its length is wrong".to_owned()) }
}

#[expect(unsafe_code, reason = "a file mapping is only sound while nobody truncates the file: see SAFETY")]
fn map_shard(file: &File, geometry: Geometry, shard: usize) -> std::io::Result<Mapping> {
    let offset = (PAGE_BYTES + shard * geometry.shard_bytes()) as u64;
    let mut options = MmapOptions::new();
    let options = options.offset(offset).len(geometry.shard_bytes());
    // SAFETY: the file is as long as its geometry says (just checked or set), is locked against other emulators,
    // every shard is mapped once and only seen through its mutex, and all bytes are valid values. What remains is
    // a foreign process that truncates or writes the file, which the documentation forbids.
    let map = unsafe { options.map_mut(file)? };
    Ok(Mapping::new(map, geometry))
}

/// A reader's copy of an observer file, taken at one moment; the emulator may be running or dead.
pub struct ObserverFile {
    bytes: Vec<u8>,
    geometry: Geometry,
    totals: ObserverTotals,
}

impl ObserverFile {
    /// Reads the file. Fails when it cannot be read or is not an observer file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, EmulatorError> {
        let path = path.as_ref();
        let fail = |reason: String| EmulatorError::Observer { path: path.to_owned(), reason };
        let bytes = std::fs::read(path).map_err(|source| EmulatorError::file(path, source))?;
        let geometry = Geometry::from_header(bytes.get(..PAGE_BYTES).unwrap_or_default()).map_err(fail)?;
        if bytes.len() != geometry.file_bytes() {
            return Err(fail("its length is wrong".to_owned()));
        }
        let mut file = Self { bytes, geometry, totals: ObserverTotals::default() };
        file.totals = file.sum();
        Ok(file)
    }

    /// Returns the counts of a token; zeros when it was never seen.
    pub fn lookup(&self, token: &str) -> Counts {
        self.lookup_hash(token_hash(token.as_bytes()))
    }

    /// Returns the counts under a hash made by [`token_hash`].
    pub fn lookup_hash(&self, hash: u64) -> Counts {
        let shard = shard_of(hash, self.geometry.shards as usize);
        table::find(self.slots(shard), hash).unwrap_or_default()
    }

    /// Returns the sums over all tokens, counted from the slots.
    pub fn totals(&self) -> ObserverTotals {
        self.totals
    }

    /// Visits every token that was seen, by its hash, in no order.
    pub fn for_each(&self, mut visit: impl FnMut(u64, Counts)) {
        for shard in 0..self.geometry.shards as usize {
            table::for_each(self.slots(shard), &mut visit);
        }
    }

    fn sum(&self) -> ObserverTotals {
        let mut totals = ObserverTotals::default();
        self.for_each(|_, counts| totals.add(counts));
        totals.overflow =
            (0..self.geometry.shards as usize).map(|shard| number(self.shard(shard), OVERFLOW_AT)).sum();
        totals
    }

    fn shard(&self, shard: usize) -> &[u8] {
        &self.bytes[PAGE_BYTES + shard * self.geometry.shard_bytes()..][..self.geometry.shard_bytes()]
    }

    fn slots(&self, shard: usize) -> &[u8] {
        &self.shard(shard)[PAGE_BYTES..][..self.geometry.slots_per_shard as usize * SLOT_BYTES]
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
