//! Transactions that end: a lost connection is opened again, a collision is done again, and of a commit that was not
//! answered the server is asked what became of it.

use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;

use super::access::DatabaseAccess;
use super::connection::{ConnectionStanding, PostgresConnection as Connection};
use super::incarnation;
use crate::sql::{Done, SqlError, one, unavailable};

/// The first number of our advisory locks in a database.
pub(super) const LOCKS: i64 = 0x5354_4E54;
/// Writes something of no meaning into the server's log, for which a commit waits as for anything else.
pub(super) const STANDBY_NOTE: &str = "SELECT pg_logical_emit_message(TRUE, 'stentor', '')";
/// Longest wait of one attempt for the standby.
const STANDBY_WAIT: Duration = Duration::from_secs(2);
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

    /// Does something in one transaction, over and over until it is kept or refused: the work may be done several times.
    pub(super) fn commit<T>(
        &mut self,
        scope: LockScope,
        mut work: impl FnMut(&Connection) -> Done<T>,
    ) -> Result<T, StoreError> {
        // Counted from the first attempt: a caller waits no longer, however many there are.
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

    /// Reads in one snapshot, or with a snapshot for each statement; the work may be done several times.
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
        // After a failure too: the next read over this connection would go on in the old snapshot.
        connection.batch("COMMIT")?;
        done
    }

    /// Returns the connection, which is opened where there is none.
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
        // Before the transaction: afterwards it may be another life.
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
                // Both are known since before the commit: over this connection nothing can be asked any more.
                let (number, life) = (connection.transaction(), connection.life(incarnation::look));
                match self.became(number, life.as_deref(), until) {
                    // A session that was ended in its wait for a standby says no more of it.
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

    /// Waits until a synchronous standby has what was committed, where there is one: a commit that comes later is not answered before the standby
    /// has all earlier ones. What the primary alone has is not answered, since a promotion would lose it.
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
