//! Transactions with a definite end: a lost connection is reopened, a collision is retried, and if a commit was not answered, the server is
//! queried for the state of the transaction.

use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;

use super::access::DatabaseAccess;
use super::connection::{ConnectionStanding, PostgresConnection as Connection};
use super::incarnation;
use crate::sql::{Done, SqlError, one, unavailable};

/// The first number of our advisory locks in a database.
pub(super) const LOCKS: i64 = 0x5354_4E54;
/// Writes a meaningless record into the server's log, for which a commit waits as for any other.
pub(super) const STANDBY_NOTE: &str = "SELECT pg_logical_emit_message(TRUE, 'stentor', '')";
/// Longest wait of one attempt for the standby.
const STANDBY_WAIT: Duration = Duration::from_secs(2);
/// The pause before a retry.
const PAUSE: Duration = Duration::from_millis(20);

/// The lock that a transaction holds exclusively among all writers, so that rows read by its rules stay as they are until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LockScope {
    /// None: its statements are correct beside any others.
    Rows,
    /// Devices, topics, users and groups.
    Registry,
    /// Campaigns, chunks, books, schedules. Its holder may take the registry's lock too, but not the other way round.
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

/// The result of one attempt.
enum TransactionEnd<T> {
    Ended(Done<T>),
    /// Nothing was committed; it may be tried again.
    Again(SqlError),
}

/// A connection for transactions, opened when it is needed.
pub(super) struct Transactor {
    access: DatabaseAccess,
    connection: Option<Connection>,
}

impl Transactor {
    /// Starts without a connection.
    pub(super) const fn new(access: DatabaseAccess) -> Self {
        Self { access, connection: None }
    }

    /// Executes work in one transaction, and repeats it until it is committed or refused.
    pub(super) fn commit<T>(
        &mut self,
        scope: LockScope,
        mut work: impl FnMut(&Connection) -> Done<T>,
    ) -> Result<T, StoreError> {
        // Counted from the first attempt, so that the caller's wait is limited for any number of attempts.
        let until = Instant::now() + self.access.patience;
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

    /// Reads in one snapshot, or with a snapshot for each statement; the work may be repeated.
    pub(super) fn read<T>(&mut self, in_snapshot: bool, work: &dyn Fn(&Connection) -> Done<T>) -> Done<T> {
        let until = Instant::now() + self.access.patience;
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
        // After a failure too: otherwise the next read over this connection would use the old snapshot.
        connection.batch("COMMIT")?;
        done
    }

    /// Returns the connection, and opens it if needed.
    pub(super) fn connect(&mut self) -> Done<&Connection> {
        if !self.connection.as_ref().is_some_and(Connection::is_of_use) {
            self.connection = None;
            self.connection = Some(self.open()?);
        }
        self.connection.as_ref().ok_or_else(|| unavailable("there is no connection"))
    }

    fn open(&self) -> Done<Connection> {
        let opened = Connection::open(&self.access, self.access.patience);
        if let Err(fault) = &opened
            && let Some(kept_back) = self.access.shared.troubles.may_say(Instant::now())
        {
            tracing::warn!(%fault, kept_back, "no connection to the database can be had");
        }
        opened
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
        // Before the transaction: afterwards it may be another incarnation.
        connection.life(incarnation::look);
        connection.begin_watch();
        begin(connection, scope);
        let done = work(connection);
        match (connection.standing(), done) {
            (ConnectionStanding::Fine, Ok(done)) => {
                let fault = match connection.commit() {
                    Ok(None) => return TransactionEnd::Ended(Ok(done)),
                    Ok(Some(warning)) => {
                        return TransactionEnd::Ended(self.reach_standby(&warning, until).map(|()| done));
                    }
                    Err(fault) => fault,
                };
                // Both are known since before the commit, as the lost connection accepts no more queries.
                let (number, life) = (connection.transaction(), connection.life(incarnation::look));
                match self.became(number, life.as_deref(), until) {
                    // A session that was ended in its wait for a standby does not report it again.
                    Ok(true) => TransactionEnd::Ended(self.reach_standby(&fault, until).map(|()| done)),
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

    /// Returns true if a transaction was committed although its commit was not answered.
    ///
    /// In another incarnation of the server, its number may belong to another transaction. Then "committed" proves nothing. "Aborted" does:
    /// either that transaction or this one was aborted, and in both cases this one has left no trace.
    fn became(&mut self, number: Option<String>, life: Option<&str>, until: Instant) -> Done<bool> {
        let unknown =
            || unavailable("it is not known whether it was kept: the server was lost in the commit");
        let number = number.ok_or_else(unknown)?;
        // The connection was lost in the commit; the server is queried over another one.
        self.connection = None;
        loop {
            let (status, now) = self.status_of(&number).unwrap_or_default();
            match status.as_deref() {
                Some("committed") if now.is_some() && now.as_deref() == life => return Ok(true),
                Some("committed") => return Err(unknown()),
                Some("aborted") => return Ok(false),
                // The transaction is still in progress, or the server is not back yet.
                _ if Instant::now() < until => std::thread::sleep(PAUSE),
                _ => return Err(unknown()),
            }
        }
    }

    /// Waits until a synchronous standby, if there is one, has the committed data: a later commit is not answered before the standby has
    /// all earlier ones. Data that only the primary has is not confirmed, since a promotion would lose it.
    fn reach_standby(&mut self, why: &dyn std::fmt::Display, until: Instant) -> Done<()> {
        loop {
            match self.connect().and_then(|connection| connection.note_within(STANDBY_WAIT, STANDBY_NOTE)) {
                Ok(None) => return Ok(()),
                _ if Instant::now() < until => std::thread::sleep(PAUSE),
                _ => {
                    if let Some(kept_back) = self.access.shared.troubles.may_say(Instant::now()) {
                        tracing::error!(%why, kept_back, "the database has committed and not reached its synchronous standby");
                    }
                    return Err(unavailable(format!(
                        "it is kept by the primary alone, whose synchronous standby was not reached: {why}"
                    )));
                }
            }
        }
    }

    /// Returns the server's status of a transaction, and the server's incarnation.
    fn status_of(&mut self, number: &str) -> Done<(Option<String>, Option<String>)> {
        let connection = self.connect()?;
        let life = connection.life(incarnation::look);
        let sql = "SELECT pg_xact_status($1::text::xid8)";
        let status = one(connection, sql, [number], |row| row.get::<Option<String>>(0))?;
        Ok((status.flatten(), life))
    }
}

/// Begins a transaction with a lock, and queries its number.
fn begin(connection: &Connection, scope: LockScope) {
    // Queried now: after a commit without an answer, this connection is lost.
    connection.begin("BEGIN; SELECT pg_current_xact_id() AS transaction");
    if scope != LockScope::Rows {
        hold(connection, scope);
    }
}

/// Takes a lock before the next statement, waiting for its holder. It is held until the transaction ends, and may be taken repeatedly.
pub(super) fn hold(connection: &Connection, scope: LockScope) {
    connection.defer(&format!("SELECT pg_advisory_xact_lock({LOCKS}, {})", scope.code()));
}
