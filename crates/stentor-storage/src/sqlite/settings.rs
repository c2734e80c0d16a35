/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// When it is on disk. The store's only honest setting.
    Full,
    /// When the operating system has it; the file stays whole after a power cut but may have forgotten the last commits.
    Normal,
    /// When the operating system has it; a power cut may damage the file.
    Off,
}

impl Synchronous {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
            Self::Off => "OFF",
        }
    }

    /// Returns the number by which SQLite tells it back (sqlite.org/pragma.html, synchronous).
    pub(super) const fn code(self) -> i64 {
        match self {
            Self::Off => 0,
            Self::Normal => 1,
            Self::Full => 2,
        }
    }
}

/// How an SQLite file is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteSettings {
    /// How long to wait for another process that holds the file, a backup for instance.
    pub busy_timeout_ms: u32,
    /// Page cache of the writing connection.
    pub writer_cache_kib: u32,
    /// Page cache of each reading connection; what is beyond the 64 pages that SQLite is built to keep for it is taken and
    /// given back with every commit of the writer (.cargo/config.toml).
    pub reader_cache_kib: u32,
    /// Connections that read a few rows at once: so many for callers and devices, and as many for the pipeline.
    pub readers_max_count: usize,
    /// Connections that walk over many rows at once: so many for the pipeline, and as many for what callers ask.
    pub long_readers_max_count: usize,
    /// How much of the file reading connections map into memory; 0 maps nothing.
    pub mmap_mib: u32,
    /// Pages in the write-ahead log after which it is copied into the file.
    pub wal_autocheckpoint_pages: u32,
    /// Bytes of the write-ahead log above which readers are held back for a moment and it is begun anew.
    pub wal_max_bytes: u64,
    /// Most jobs of one commit.
    pub group_commit_max_jobs: usize,
    /// After this long no further job joins a commit.
    pub group_commit_max_ms: u32,
    /// Most jobs that wait; callers beyond wait for a place.
    pub waiting_max_jobs: usize,
    /// When a commit counts as done.
    pub synchronous: Synchronous,
    /// Name of a registered SQLite VFS; `None` is the usual one.
    pub vfs: Option<String>,
}

impl SqliteSettings {
    /// Returns what suits a store: every commit is on disk before it is answered.
    #[must_use]
    pub fn store() -> Self {
        Self {
            busy_timeout_ms: 5_000,
            writer_cache_kib: 24 * 1_024,
            reader_cache_kib: 256,
            readers_max_count: 4,
            long_readers_max_count: 2,
            mmap_mib: 0,
            wal_autocheckpoint_pages: 8_192,
            wal_max_bytes: 128 * 1_024 * 1_024,
            group_commit_max_jobs: 512,
            group_commit_max_ms: 20,
            waiting_max_jobs: 1_024,
            synchronous: Synchronous::Full,
            vfs: None,
        }
    }

    /// Returns what suits a queue: its file can be rebuilt from the store, so a power cut may take its last commits,
    /// and no commit waits for the disk; what it must not do is leave a damaged file, hence not `Off`.
    #[must_use]
    pub fn queue() -> Self {
        let synchronous = Synchronous::Normal;
        Self { writer_cache_kib: 4 * 1_024, readers_max_count: 0, synchronous, ..Self::store() }
    }
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self::store()
    }
}
