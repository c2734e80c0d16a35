//! Settings of an SQLite file.

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

    /// Returns the number by which SQLite reports it (sqlite.org/pragma.html, synchronous).
    pub(super) const fn code(self) -> i64 {
        match self {
            Self::Off => 0,
            Self::Normal => 1,
            Self::Full => 2,
        }
    }
}

/// Settings of an SQLite file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteSettings {
    /// The longest wait for another process that holds the file, a backup for instance.
    pub busy_timeout_ms: u32,
    /// Page cache of the writer's connection.
    pub writer_cache_kib: u32,
    /// Page cache of each reader's connection. Memory beyond the 64 pages that SQLite's build keeps is allocated and freed with every
    /// commit of the writer (.cargo/config.toml).
    pub reader_cache_kib: u32,
    /// The number of connections for small reads: one set for callers and devices, and one for the pipeline.
    pub readers_max_count: usize,
    /// The number of connections for long reads: one set for the pipeline, and one for requests of callers.
    pub long_readers_max_count: usize,
    /// The part of the file that reader connections map into memory; 0 maps nothing.
    pub mmap_mib: u32,
    /// Pages in the write-ahead log after which it is copied into the file.
    pub wal_autocheckpoint_pages: u32,
    /// The size of the write-ahead log in bytes above which readers are held back for a moment and the log is truncated.
    pub wal_max_bytes: u64,
    /// Most jobs of one commit.
    pub group_commit_max_jobs: usize,
    /// After this long no further job joins a commit.
    pub group_commit_max_ms: u32,
    /// Most jobs that wait; callers beyond wait for a place.
    pub waiting_max_jobs: usize,
    /// When a commit counts as done.
    pub synchronous: Synchronous,
    /// Commits on the caller's thread, for a file that needs no sync.
    pub writes_inline: bool,
    /// Name of a registered SQLite VFS; `None` is the usual one.
    pub vfs: Option<String>,
}

impl SqliteSettings {
    /// Returns the settings of a store: every commit is on disk before it is answered.
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
            writes_inline: false,
            vfs: None,
        }
    }

    /// Settings of a temporary file, which no process opens again: nothing waits for the disk.
    pub(super) fn temporary() -> Self {
        Self { synchronous: Synchronous::Off, writes_inline: true, ..Self::store() }
    }

    /// Returns the settings of a queue. Its file can be rebuilt from the store, so a power cut may lose its last commits, and no commit
    /// waits for the disk. It must not leave a damaged file, hence not `Off`.
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
