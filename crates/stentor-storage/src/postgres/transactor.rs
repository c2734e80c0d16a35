//! Transactions that end: a lost connection is opened again, a collision is done again, and of a commit that was not
//! answered the server is asked what became of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;

use super::address::PostgresAddress;
use super::connection::{ConnectionStanding, PostgresConnection as Connection};
use super::damage_log::DamageLog;
use super::fault::{Done, PostgresError, unavailable};
use super::incarnation;
use super::query::one;

/// The first number of our advisory locks in a database.
pub(super) const LOCKS: i64 = 0x5354_4E54;
/// How long to wait before anything is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// What a transaction holds alone among all that write: rows that its rules read must be theirs until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LockScope {
    /// Nothing: its statements are right beside any others.
    Rows,
    /// Devices, topics, people and groups.
    Registry,
    /// Campaigns, chunks, books, schedules. Who holds it may take the registry too, and never the other way about.
    Ledger,
}

impl LockScope {
    const fn code(self) -> i64 {
        match self {
            Self::Rows => 1,
            Self::Registry => 2,
            Self::Ledger => 3,
        }
    }
}

/// What came of trying once.
enum TransactionEnd<T> {
    Ended(Done<T>),
    /// Nothing was kept; it may be tried again.
    Again(PostgresError),
}

/// A connection for transactions, opened when it is needed.
pub(super) struct Transactor {
    address: PostgresAddress,
    damage: Arc<DamageLog>,
    connection: Option<Connection>,
    patience: Duration,
}

impl Transactor {
    /// Starts without a connection.
    pub(super) const fn new(address: PostgresAddress, damage: Arc<DamageLog>, patience: Duration) -> Self {
        Self { address, damage, connection: None, patience }
    }

    /// Does something in one transaction, over and over until it is kept or refused: the work may be done several times.
    pub(super) fn commit<T>(
        &mut self,
        scope: LockScope,
        mut work: impl FnMut(&Connection) -> Done<T>,
    ) -> Result<T, StoreError> {
        // Counted from the first attempt: a caller waits no longer, however many there are.
        let until = Instant::now() + self.patience;
        loop {
            match self.attempt(scope, until, &mut work) {
                TransactionEnd::Ended(done) => return Ok(done?),
                TransactionEnd::Again(fault) if Instant::now() >= until => {
                    tracing::error!(%fault, "the store cannot write");
                    return Err(StoreError::Unavailable(StoreError::from(fault).to_string()));
                }
                TransactionEnd::Again(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Reads in one snapshot, or with a snapshot for each statement; the work may be done several times.
    pub(super) fn read<T>(&mut self, in_snapshot: bool, work: &dyn Fn(&Connection) -> Done<T>) -> Done<T> {
        let until = Instant::now() + self.patience;
        loop {
            let done = self.read_once(in_snapshot, work);
            let is_lost =
                self.connection.as_ref().is_none_or(|one| one.standing() == ConnectionStanding::Lost);
            if is_lost {
                self.connection = None;
                if done.is_err() && Instant::now() < until {
                    std::thread::sleep(PAUSE);
                    continue;
                }
            }
            return done;
        }
    }

    fn read_once<T>(&mut self, in_snapshot: bool, work: &dyn Fn(&Connection) -> Done<T>) -> Done<T> {
        let connection = self.connect()?;
        if !in_snapshot {
            return work(connection);
        }
        connection.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let done = work(connection);
        // After a failure too: the next read over this connection would go on in the old snapshot.
        connection.batch("COMMIT")?;
        done
    }

    /// Returns the connection, which is opened where there is none.
    pub(super) fn connect(&mut self) -> Done<&Connection> {
        if self.connection.as_ref().is_none_or(|one| one.standing() == ConnectionStanding::Lost) {
            self.connection = None;
            let connection = Connection::open(&self.address, Arc::clone(&self.damage), self.patience)?;
            self.connection = Some(connection);
        }
        self.connection.as_ref().ok_or_else(|| unavailable("there is no connection"))
    }

    fn attempt<T>(
        &mut self,
        scope: LockScope,
        until: Instant,
        work: &mut impl FnMut(&Connection) -> Done<T>,
    ) -> TransactionEnd<T> {
        let connection = match self.connect() {
            Ok(connection) => connection,
            Err(fault) if fault.is_unavailable() => return TransactionEnd::Again(fault),
            Err(fault) => return TransactionEnd::Ended(Err(fault)),
        };
        // Before the transaction: afterwards it may be another life.
        connection.life(incarnation::look);
        connection.begin_watch();
        begin(connection, scope);
        let done = work(connection);
        match (connection.standing(), done) {
            (ConnectionStanding::Fine, Ok(done)) => {
                let Err(fault) = connection.batch("COMMIT") else { return TransactionEnd::Ended(Ok(done)) };
                // Both are known since before the commit: over this connection nothing can be asked any more.
                let (number, life) = (connection.transaction(), connection.life(incarnation::look));
                match self.became(number, life.as_deref(), until) {
                    Ok(true) => TransactionEnd::Ended(Ok(done)),
                    Ok(false) => TransactionEnd::Again(fault),
                    Err(unknown) => TransactionEnd::Ended(Err(unknown)),
                }
            }
            (standing, done) => {
                if connection.batch("ROLLBACK").is_err() || standing == ConnectionStanding::Lost {
                    self.connection = None;
                }
                match (standing, done) {
                    (ConnectionStanding::Fine, Err(fault)) => TransactionEnd::Ended(Err(fault)),
                    (_, Err(fault)) => TransactionEnd::Again(fault),
                    (_, Ok(_)) => TransactionEnd::Again(unavailable("the transaction was taken back")),
                }
            }
        }
    }

    /// Returns whether a transaction was kept whose commit was not answered.
    ///
    /// In another life of the server its number may be another's, so that "committed" says nothing of this one. "Aborted" does: that
    /// one or this one was, and then this one is nowhere.
    fn became(&mut self, number: Option<String>, life: Option<&str>, until: Instant) -> Done<bool> {
        let unknown =
            || unavailable("it is not known whether it was kept: the server was lost in the commit");
        let number = number.ok_or_else(unknown)?;
        // It was lost in the commit, and says nothing more; the server is asked over another.
        self.connection = None;
        loop {
            let (status, now) = self.status_of(&number).unwrap_or_default();
            match status.as_deref() {
                Some("committed") if now.is_some() && now.as_deref() == life => return Ok(true),
                Some("committed") => return Err(unknown()),
                Some("aborted") => return Ok(false),
                // It goes on, or the server is not there yet.
                _ if Instant::now() < until => std::thread::sleep(PAUSE),
                _ => return Err(unknown()),
            }
        }
    }

    /// Returns what the server says of a transaction, and in which of its lives.
    fn status_of(&mut self, number: &str) -> Done<(Option<String>, Option<String>)> {
        let connection = self.connect()?;
        let life = connection.life(incarnation::look);
        let sql = "SELECT pg_xact_status($1::text::xid8)";
        let status = one(connection, sql, [number], |row| row.get::<Option<String>>(0))?;
        Ok((status.flatten(), life))
    }
}

/// Begins a transaction that holds something alone, and asks for its number.
fn begin(connection: &Connection, scope: LockScope) {
    // Asked for now: after a commit without an answer this connection tells nothing more.
    connection.begin("BEGIN; SELECT pg_current_xact_id() AS transaction");
    if scope != LockScope::Rows {
        hold(connection, scope);
    }
}

/// Waits before the next statement until nobody else holds it; it is held until the transaction ends, however often it is asked for.
pub(super) fn hold(connection: &Connection, scope: LockScope) {
    connection.defer(&format!("SELECT pg_advisory_xact_lock({LOCKS}, {})", scope.code()));
}
