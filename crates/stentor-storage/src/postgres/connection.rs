//! One connection to the server, with the statements that are prepared on it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stentor_core::ports::store::{NodeEvent, StoreError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, SimpleQueryMessage, Statement};

use super::access::{DatabaseAccess, SharedNotes};
use super::address::StatementLimits;
use super::copy_rows::CopyRows;
use super::fault::{is_collision, is_loss, nul};
use super::last_writes::LastWrites;
use super::row::PostgresRow;
use super::session::DatabaseSession;
use super::value::holds_nul;
use crate::sql::dialect::{self, Dialect};
use crate::sql::{self, Done, Sql, SqlError, Value, unavailable};

/// The state of a connection and its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionStanding {
    /// The transaction can continue.
    Fine,
    /// The server ended the transaction because of another one.
    Collided,
    /// The connection is lost.
    Lost,
}

/// A connection; it lives and ends on one thread.
pub struct PostgresConnection {
    session: RefCell<DatabaseSession>,
    statements: RefCell<HashMap<String, Arc<Statement>>>,
    changes: Cell<u64>,
    standing: Cell<ConnectionStanding>,
    /// Statements without values that go along with the next one.
    deferred: RefCell<String>,
    /// The rows to be written after all jobs of the transaction.
    last_writes: RefCell<LastWrites>,
    /// The number of the transaction, once it is known.
    transaction: RefCell<Option<String>>,
    /// The incarnation of the server in which it was opened, once it was needed.
    life: OnceCell<Option<String>>,
    /// The time of the last receipt, and the store's count of silences when the connection was opened.
    received_at: Cell<Instant>,
    silences: u64,
    /// State shared by the store's connections.
    pub(super) shared: Arc<SharedNotes>,
}

impl PostgresConnection {
    /// Connects within `wait`.
    pub(super) fn open(access: &DatabaseAccess, wait: Duration) -> Done<Self> {
        let silences = access.shared.silences();
        let session = access.address.connect(wait, access.limits)?;
        Ok(Self {
            session: RefCell::new(session),
            statements: RefCell::default(),
            changes: Cell::new(0),
            standing: Cell::new(ConnectionStanding::Fine),
            deferred: RefCell::default(),
            last_writes: RefCell::default(),
            transaction: RefCell::default(),
            life: OnceCell::new(),
            received_at: Cell::new(Instant::now()),
            silences,
            shared: Arc::clone(&access.shared),
        })
    }

    /// Appends rows to a table: `sql` is a `COPY … FROM STDIN (FORMAT binary)`.
    pub(super) fn copy(&self, sql: &str, rows: CopyRows) -> Done<()> {
        let bytes = rows.finish()?;
        let statement = self.prepare(sql)?;
        let copied = self.session.borrow_mut().copy_in(&statement, &bytes);
        let count = self.noted(copied)?;
        self.changes.set(self.changes.get() + count);
        Ok(())
    }

    /// Reads rows.
    pub(super) fn rows(&self, sql: &str, values: &[Value<'_>]) -> Done<Vec<Row>> {
        check_values(values)?;
        let statement = self.prepare(sql)?;
        let params = as_params(values);
        let done = self.session.borrow_mut().query(&statement, &params);
        self.noted(done)
    }

    /// Returns the types of a statement's columns.
    pub(super) fn column_types(&self, sql: &str) -> Done<Vec<Type>> {
        Ok(self.prepare(sql)?.columns().iter().map(|column| column.type_().clone()).collect())
    }

    /// Executes statements without values in one round trip.
    pub(super) fn batch(&self, sql: &str) -> Done<()> {
        self.defer(sql);
        self.send_deferred()
    }

    /// Executes statements without values in one round trip; returns the first value of the first row as text.
    pub(super) fn ask_now(&self, sql: &str) -> Done<Option<String>> {
        self.send_deferred()?;
        let done = self.session.borrow_mut().simple_query(sql);
        let first = self.noted(done)?.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(first)
    }

    /// Sends statements without values along with the next statement, which saves a round trip. They must not have an effect that is needed
    /// before.
    pub(super) fn defer(&self, sql: &str) {
        let mut deferred = self.deferred.borrow_mut();
        if !deferred.is_empty() {
            deferred.push(';');
        }
        deferred.push_str(sql);
    }

    /// Begins a transaction with the next statement.
    pub(super) fn begin(&self, sql: &str) {
        // Otherwise the number of the former transaction would be taken for this one's if `BEGIN` fails.
        self.transaction.take();
        self.last_writes.take();
        self.defer(sql);
    }

    /// Publishes an event to other nodes at the end of the transaction.
    pub(super) fn publish(&self, origin: u64, event: NodeEvent) {
        self.last_writes.borrow_mut().events.push((origin, event));
    }

    /// Writes a meaningless row at the end of the transaction.
    pub(super) fn probe(&self) {
        self.last_writes.borrow_mut().probes = true;
    }

    /// Takes the rows to be written at the end of the transaction.
    pub(super) fn last_writes(&self) -> LastWrites {
        self.last_writes.take()
    }

    /// Returns the number of the transaction, which its first statement reads as `transaction`.
    pub(super) fn transaction(&self) -> Option<String> {
        self.transaction.borrow().clone()
    }

    /// Returns the incarnation of the server in which it was opened; it is read once.
    pub(super) fn life(&self, look: impl FnOnce(&Self) -> Option<String>) -> Option<String> {
        self.life.get_or_init(|| look(self)).clone()
    }

    /// Waits up to `wait` for a notification on a channel that the session listens to; returns its payload if one came.
    pub(super) fn next_notice(&self, wait: Duration) -> Done<Option<String>> {
        let notification = self.session.borrow_mut().next_word(wait);
        match notification {
            // Silence does not count as a receipt.
            Ok(None) => Ok(None),
            notification => self.noted(notification),
        }
    }

    /// Returns its state since the last transaction began.
    pub(super) fn standing(&self) -> ConnectionStanding {
        if self.session.borrow().is_closed() { ConnectionStanding::Lost } else { self.standing.get() }
    }

    /// Returns true if the connection may be used again. It may not if another connection fell silent since this one was opened, as the
    /// cause has probably silenced this one too.
    pub(super) fn is_of_use(&self) -> bool {
        self.standing() != ConnectionStanding::Lost && self.silences == self.shared.silences()
    }

    /// Returns true if nothing was received over it for the given time.
    pub(super) fn is_quiet_for(&self, span: Duration) -> bool {
        self.received_at.get().elapsed() >= span
    }

    /// Sets the time limits of later statements.
    pub(super) fn limit(&self, limits: StatementLimits) -> Done<()> {
        self.session.borrow_mut().set_patience(limits.client);
        self.batch(&limits.setting())
    }

    /// Executes one statement as a transaction of its own within `limit`; returns the server's warning, if there was one.
    pub(super) fn note_within(&self, limit: Duration, sql: &str) -> Done<Option<String>> {
        let usual = self.session.borrow_mut().set_patience(limit);
        let noted = self.heeding_warnings(sql);
        self.session.borrow_mut().set_patience(usual);
        noted
    }

    fn heeding_warnings(&self, sql: &str) -> Done<Option<String>> {
        self.session.borrow_mut().take_warning();
        self.batch(sql)?;
        Ok(self.session.borrow_mut().take_warning())
    }

    /// Commits; returns the server's warning, if there was one: the transaction is committed then, but has not reached its standby.
    pub(super) fn commit(&self) -> Done<Option<String>> {
        self.heeding_warnings("COMMIT")
    }

    /// Resets the state before a transaction.
    pub(super) fn begin_watch(&self) {
        // Only a collision ends with its transaction; a lost connection stays lost.
        if self.standing.get() == ConnectionStanding::Collided {
            self.standing.set(ConnectionStanding::Fine);
        }
    }

    /// Records that another transaction changed rows read before: the transaction must be repeated.
    pub(super) fn collide(&self) -> SqlError {
        self.standing.set(ConnectionStanding::Collided);
        unavailable("another transaction came in between")
    }

    fn send_deferred(&self) -> Done<()> {
        let sql = self.deferred.take();
        if sql.is_empty() {
            return Ok(());
        }
        let done = self.session.borrow_mut().simple_query(&sql);
        for message in self.noted(done)? {
            if let SimpleQueryMessage::Row(row) = message
                && let Ok(Some(number)) = row.try_get("transaction")
            {
                self.transaction.replace(Some(number.to_owned()));
            }
        }
        Ok(())
    }

    /// Returns the prepared statement; deferred statements are executed before.
    fn prepare(&self, sql: &str) -> Done<Arc<Statement>> {
        // Also for a cached statement: it may need the deferred lock or savepoint.
        self.send_deferred()?;
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(Arc::clone(known));
        }
        let prepared = self.session.borrow_mut().prepare(&with_own_placeholders(sql));
        let statement = Arc::new(self.noted(prepared)?);
        self.statements.borrow_mut().insert(sql.to_owned(), Arc::clone(&statement));
        Ok(statement)
    }

    fn noted<T>(&self, done: Done<T>) -> Done<T> {
        match &done {
            Ok(_) => self.received_at.set(Instant::now()),
            Err(SqlError::Postgres(error)) if is_loss(error) => {
                self.standing.set(ConnectionStanding::Lost);
            }
            Err(SqlError::Postgres(error)) if is_collision(error) => {
                self.standing.set(ConnectionStanding::Collided);
            }
            Err(fault) if self.session.borrow().is_silent() => self.note_silence(fault),
            Err(_) => {}
        }
        done
    }

    fn note_silence(&self, fault: &SqlError) {
        self.standing.set(ConnectionStanding::Lost);
        self.shared.note_silence();
        if let Some(kept_back) = self.shared.troubles.may_say(Instant::now()) {
            tracing::warn!(%fault, kept_back, "a connection to the database is given up and replaced");
        }
    }
}

impl Sql for PostgresConnection {
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Done<usize> {
        check_values(values)?;
        let statement = self.prepare(sql)?;
        let params = as_params(values);
        let done = self.session.borrow_mut().execute(&statement, &params);
        let count = self.noted(done)?;
        self.changes.set(self.changes.get() + count);
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn query(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: &mut dyn FnMut(&sql::Row<'_>) -> Done<ControlFlow<()>>,
    ) -> Done<()> {
        for row in &self.rows(sql, values)? {
            if read(&PostgresRow(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::POSTGRES
    }

    fn changes(&self) -> u64 {
        self.changes.get()
    }

    fn portion_time(&self) -> Duration {
        Duration::from_millis(50)
    }

    fn note_slowness(&self) {
        if let Some(kept_back) = self.shared.least_steps.may_say(Instant::now()) {
            tracing::warn!(
                kept_back,
                "the database answers so slowly that steps do only their least: it is far away or overloaded (`stentor doctor` measures)"
            );
        }
    }

    fn begin_part(&self) -> Done<usize> {
        self.defer("SAVEPOINT part");
        Ok(self.last_writes.borrow().events.len())
    }

    fn keep_part(&self) -> Done<()> {
        self.defer("RELEASE part");
        Ok(())
    }

    fn undo_part(&self, mark: usize) -> Done<()> {
        // These events announce changes that are rolled back.
        self.last_writes.borrow_mut().events.truncate(mark);
        self.batch("ROLLBACK TO part; RELEASE part")
    }

    fn note_damage(&self, table: &'static str, key: i64, identity: i64, error: &SqlError) {
        if self.shared.damage.is_first(table, identity) {
            tracing::error!(table, key, %error, "a row cannot be read: it is left out, the others are not");
        }
    }

    fn force(&self, _: &str, _: &str, sql: &str, values: &[Value<'_>]) -> Done<usize> {
        // PostgreSQL columns are strictly typed, so an ordinary statement suffices.
        self.execute(sql, values)
    }
}

/// Returns a statement with PostgreSQL's placeholders (`$1`) in place of SQLite's (`?1`).
fn with_own_placeholders(sql: &str) -> String {
    let mut own = String::with_capacity(sql.len());
    let mut letters = sql.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_placeholder = letter == '?' && letters.peek().is_some_and(char::is_ascii_digit);
        own.push(if is_placeholder { '$' } else { letter });
    }
    own
}

fn check_values(values: &[Value<'_>]) -> Done<()> {
    if values.iter().any(holds_nul) { Err(nul()) } else { Ok(()) }
}

fn as_params<'v>(values: &'v [Value<'v>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Returns that the store was closed.
pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
