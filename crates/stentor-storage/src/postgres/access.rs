//! The connections of a store: their common state, and the longest waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stentor_core::repetition::RepeatedWord;

use super::address::{PostgresAddress, StatementLimits};
use super::damage_log::DamageLog;
use super::settings::PostgresSettings;
use super::store::OwnInstance;

/// The longest time for a statement of a program that works through whole tables.
const LONG_STATEMENT_MAX_MS: u32 = 3_600_000;

/// The common state of a store's connections.
#[derive(Clone)]
pub(super) struct DatabaseAccess {
    pub(super) address: PostgresAddress,
    /// Longest wait of a job for a server that is gone.
    pub(super) patience: Duration,
    pub(super) limits: StatementLimits,
    pub(super) shared: Arc<SharedNotes>,
}

/// State shared by a store's connections.
#[derive(Debug, Default)]
pub(super) struct SharedNotes {
    /// The identity of this process among the nodes.
    pub(super) own: Arc<OwnInstance>,
    /// Rows that could not be read.
    pub(super) damage: DamageLog,
    /// The number of connections that fell silent. The cause has probably silenced the others that were open then.
    silences: AtomicU64,
    /// Limits the log entries about connections that cannot be opened or fell silent.
    pub(super) troubles: RepeatedWord,
    /// Limits the log entries about steps that are reduced to the minimum.
    pub(super) least_steps: RepeatedWord,
}

impl DatabaseAccess {
    /// Reaches a database as the settings say.
    pub(super) fn new(address: &PostgresAddress, settings: &PostgresSettings) -> Self {
        Self {
            address: address.clone(),
            patience: Duration::from_millis(settings.patience_ms.into()),
            limits: StatementLimits::of_ms(settings.statement_max_ms),
            shared: Arc::default(),
        }
    }

    /// Creates the access for one inspection, which waits at most `patience` for the server.
    pub(super) fn for_a_look(address: &PostgresAddress, patience: Duration) -> Self {
        Self { patience, ..Self::new(address, &PostgresSettings::default()) }
    }

    /// Reaches a database for work with whole tables.
    pub(super) fn for_long_work(address: &PostgresAddress, patience: Duration) -> Self {
        Self { limits: Self::long_limits(), ..Self::for_a_look(address, patience) }
    }

    /// Returns the limits of statements that work through whole tables.
    pub(super) fn long_limits() -> StatementLimits {
        StatementLimits::of_ms(LONG_STATEMENT_MAX_MS)
    }
}

impl SharedNotes {
    /// Counts a connection that fell silent.
    pub(super) fn note_silence(&self) {
        self.silences.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often one fell silent.
    pub(super) fn silences(&self) -> u64 {
        self.silences.load(Ordering::Relaxed)
    }
}
