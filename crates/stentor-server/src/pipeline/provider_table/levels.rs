//! The levels of all quotas, in a small file, so that a restart continues with the levels of the process before it.
//!
//! They are not in the store because a level changes with every chunk and every single message, before it is leased. A record here costs
//! one system call of a microsecond (64 bytes, measured); a row would add a commit to each of them. The file is not a ledger: if it is
//! lost, the only effect is that quotas start cold.
//!
//! A record is written before its chunk is leased and is never synced. It survives any end of the process, and a power cut only as far as
//! the system had written it by itself. A lost or damaged file causes a cold start.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::quota::Level;
use stentor_core::time::Timestamp;

use super::key::ProviderKey;

const RECORD_BYTES: usize = 64;
const BODY_BYTES: usize = 56;
/// Identifies this version of the record.
const MARK: u64 = 0x5354_4e51_5541_0001;

/// The file of levels.
#[derive(Default)]
pub(crate) struct Levels {
    file: Option<Arc<File>>,
    /// The place of each credential, and its level left by an earlier process.
    known: HashMap<ProviderKey, (u64, Option<Level>)>,
    /// Unused places below the last one in use.
    free: BTreeSet<u64>,
    records: u64,
}

/// The place of one credential in the file.
pub(crate) struct Slot {
    file: Arc<File>,
    place: u64,
    key: ProviderKey,
}

impl Levels {
    /// Opens and reads the file. Without a path, levels are not kept.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        let Some(path) = path else { return Self::default() };
        let opened = crate::private::options().read(true).write(true).create(true).truncate(false).open(path);
        let read = opened.and_then(|file| std::fs::read(path).map(|bytes| (file, bytes)));
        match read {
            Ok((file, bytes)) => Self::read(file, &bytes),
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the levels of quotas cannot be kept: a restart resets them");
                Self::default()
            }
        }
    }

    fn read(file: File, bytes: &[u8]) -> Self {
        let places = bytes.chunks_exact(RECORD_BYTES).zip(0..);
        let known: HashMap<ProviderKey, (u64, Option<Level>)> = places
            .filter_map(|(record, place)| decode(record).map(|(key, level)| (key, (place, Some(level)))))
            .collect();
        let records = (bytes.len() / RECORD_BYTES) as u64;
        let taken: BTreeSet<u64> = known.values().map(|(place, _)| *place).collect();
        let free = (0..records).filter(|place| !taken.contains(place)).collect();
        Self { file: Some(Arc::new(file)), known, free, records }
    }

    /// Lists the apps that have places.
    pub(super) fn apps(&self) -> impl Iterator<Item = AppId> {
        self.known.keys().map(|(app, _)| *app)
    }

    /// Frees the places of deleted apps for reuse. Their credentials must no longer use them.
    pub(super) fn forget(&mut self, gone: &HashSet<AppId>) {
        let free = &mut self.free;
        self.known.retain(|(app, _), (place, _)| {
            let stays = !gone.contains(app);
            if !stays {
                free.insert(*place);
            }
            stays
        });
        let Some(file) = &self.file else { return };
        // All free places, including those that could not be cleared the last time.
        for place in free.iter() {
            if let Err(error) = file.write_all_at(&[0; RECORD_BYTES], place * RECORD_BYTES as u64) {
                tracing::warn!(%error, "the quota of an app that is gone could not be removed");
            }
        }
    }

    /// Returns the place of a credential, and its last written level.
    pub(super) fn slot(&mut self, key: ProviderKey) -> (Option<Slot>, Option<Level>) {
        let Some(file) = self.file.clone() else { return (None, None) };
        let (records, free) = (&mut self.records, &mut self.free);
        let (place, level) = self.known.entry(key).or_insert_with(|| {
            let new = || {
                *records += 1;
                *records - 1
            };
            (free.pop_first().unwrap_or_else(new), None)
        });
        // Returned once: a second time, an entry would begin with tokens that it has spent since.
        (Some(Slot { file, place: *place, key }), level.take())
    }
}

impl Slot {
    /// Writes the present level.
    pub(super) fn keep(&self, level: Level) {
        let record = encode(self.key, level);
        if let Err(error) = self.file.write_all_at(&record, self.place * RECORD_BYTES as u64) {
            tracing::warn!(%error, app = %self.key.0, provider = %self.key.1, "a quota could not be kept");
        }
    }
}

fn encode((app, provider): ProviderKey, level: Level) -> [u8; RECORD_BYTES] {
    let fields = [
        MARK,
        app.raw(),
        u64::from(provider.code()),
        level.at.as_millis().cast_unsigned(),
        level.warm_ms,
        level.urgent_grains.cast_unsigned(),
        level.common_grains.cast_unsigned(),
    ];
    let mut record = [0; RECORD_BYTES];
    for (to, field) in record.chunks_exact_mut(8).zip(fields) {
        to.copy_from_slice(&field.to_le_bytes());
    }
    let sum = blake3::hash(&record[..BODY_BYTES]);
    record[BODY_BYTES..].copy_from_slice(&sum.as_bytes()[..RECORD_BYTES - BODY_BYTES]);
    record
}

/// Decodes a record. Returns `None` if it is incomplete, damaged or of another version.
fn decode(record: &[u8]) -> Option<(ProviderKey, Level)> {
    let mut fields =
        record.chunks_exact(8).map(|bytes| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default());
    let mut next = || fields.next();
    let (mark, app, provider) = (next()?, AppId::from_raw(next()?), u8::try_from(next()?).ok()?);
    let at = Timestamp::from_millis(next()?.cast_signed());
    let (warm_ms, urgent_grains, common_grains) = (next()?, next()?.cast_signed(), next()?.cast_signed());
    let key = (app, ProviderKind::from_code(provider)?);
    let level = Level { at, warm_ms, urgent_grains, common_grains };
    (mark == MARK && encode(key, level) == record).then_some((key, level))
}

#[cfg(test)]
mod tests;
