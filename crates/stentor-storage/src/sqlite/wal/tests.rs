use std::sync::atomic::{AtomicBool, Ordering};

use stentor_core::ports::store::StoreError;

use super::*;
use crate::sql::run;
use crate::sqlite::file;
use crate::sqlite::readers::{Readers, Reading};
use crate::sqlite::settings::SqliteSettings;
use crate::sqlite::writer::{CommitPriority, WriterThread};

/// Bytes that each job writes.
const JOB_BYTES: usize = 16 * 1_024;
const BOUND_BYTES: u64 = 1_024 * 1_024;
/// Number of times that the log is cut.
const CUTS_COUNT: u32 = 5;
const LIMIT: Duration = Duration::from_secs(60);

/// A file with one writer and some readers, with or without a bound of its log.
struct Bench {
    folder: tempfile::TempDir,
    writer: WriterThread,
    readers: Arc<Readers>,
}

impl Bench {
    fn new(wal_max_bytes: u64) -> Self {
        let folder = tempfile::TempDir::new().expect("a temporary directory");
        let path = folder.path().join("some.db");
        let settings =
            SqliteSettings { wal_max_bytes, wal_autocheckpoint_pages: 32, ..SqliteSettings::store() };
        file::ensure(&path).expect("made");
        let connection = file::open_writer(&path, &settings).map_err(|_| "opened").expect("opened");
        connection.execute_batch("CREATE TABLE numbers (n INTEGER PRIMARY KEY, b BLOB)").expect("made");
        let gate = Arc::<Gate>::default();
        let mut bound = WalBound::new(path_of(&path), wal_max_bytes, Arc::clone(&gate));
        let settled = move |connection: &Connection| bound.check(connection);
        let writer = WriterThread::start("wal-test", connection, &settings, settled).expect("started");
        Self { folder, writer, readers: Arc::new(Readers::new(&path, &settings, gate).expect("a pool")) }
    }

    fn log_bytes(&self) -> u64 {
        size(&path_of(&self.folder.path().join("some.db")))
    }

    async fn write(&self) {
        let insert = |connection: &Connection| {
            run(connection, "INSERT INTO numbers (b) VALUES (zeroblob(?1))", [JOB_BYTES as i64])
        };
        self.writer.run(CommitPriority::Usual, insert).await.expect("written");
    }

    /// Reads for the given number of engine rounds, after having seen the newest rows.
    async fn read(&self, rounds: i64) -> Result<i64, StoreError> {
        let work = move |connection: &Connection| {
            let _: i64 = connection.query_row("SELECT count(*) FROM numbers", [], |row| row.get(0))?;
            let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?1) SELECT count(*) FROM n";
            Ok(connection.query_row(sql, [rounds], |row| row.get(0))?)
        };
        self.readers.run(Reading::Long, work).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_log_stays_within_its_bound_while_reads_overlap() {
    let bench = Arc::new(Bench::new(BOUND_BYTES));
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = |_| {
        let (bench, is_over) = (Arc::clone(&bench), Arc::clone(&is_over));
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let _counted_or_interrupted = bench.read(20_000).await;
            }
        })
    };
    let readers: Vec<_> = (0..3).map(reader).collect();
    // Only a cut makes the file shorter. On a busy machine readers may get no processor in time to leave the gate, and the next attempt
    // comes after a pause; therefore the number of rows until a cut has no limit, but the time has.
    let (mut cuts, mut before) = (0, 0);
    let began = Instant::now();
    while cuts < CUTS_COUNT {
        bench.write().await;
        let bytes = bench.log_bytes();
        cuts += u32::from(bytes < before);
        before = bytes;
        assert!(began.elapsed() < LIMIT, "the log was cut {cuts} times, and has {bytes} bytes");
    }
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("read");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_without_end_is_interrupted_when_the_log_is_too_long() {
    let bench = Arc::new(Bench::new(BOUND_BYTES));
    bench.write().await;
    let reading = Arc::clone(&bench);
    let endless = tokio::spawn(async move { reading.read(i64::MAX).await });
    while !endless.is_finished() {
        bench.write().await;
    }
    let interrupted = endless.await.expect("ended");
    assert!(matches!(interrupted, Err(StoreError::Unavailable(_))), "{interrupted:?}");
    // There are no more readers: the next commit truncates the log, if the last one came before the reader had left.
    bench.write().await;
    assert!(bench.log_bytes() < 2 * BOUND_BYTES, "{} bytes of log", bench.log_bytes());
    assert_eq!(bench.read(5).await, Ok(5), "the gate is open again");
}
