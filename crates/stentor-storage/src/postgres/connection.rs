//! One connection to the server, with the statements that are prepared on it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::ToSql;
use postgres::{Client, Error, Row, Statement};
use stentor_core::ports::store::StoreError;

use super::address::PostgresAddress;
use super::damage::DamageLog;
use super::fault::{Done, PostgresError, conflict, is_collision, is_loss, unavailable};
use super::value::PostgresValue as Value;

/// How a connection stands to the transaction that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionStanding {
    /// It goes on.
    Fine,
    /// The server ended the transaction because of another one.
    Collided,
    /// There is no connection any more.
    Lost,
}

/// A connection; it lives and ends on one thread.
pub(super) struct PostgresConnection {
    client: RefCell<Client>,
    statements: RefCell<HashMap<String, Arc<Statement>>>,
    changes: Cell<u64>,
    standing: Cell<ConnectionStanding>,
    /// LedgerConnection that could not be read, of all connections of the store.
    pub(super) damage: Arc<DamageLog>,
}

impl PostgresConnection {
    /// Connects, waiting at most so long.
    pub(super) fn open(address: &PostgresAddress, damage: Arc<DamageLog>, wait: Duration) -> Done<Self> {
        let client = address.connect(wait)?;
        Ok(Self {
            client: RefCell::new(client),
            statements: RefCell::default(),
            changes: Cell::new(0),
            standing: Cell::new(ConnectionStanding::Fine),
            damage,
        })
    }

    /// Does a statement; returns how many rows it changed.
    pub(super) fn execute(&self, sql: &str, values: &[Value]) -> Done<usize> {
        let statement = self.prepare(sql, values)?;
        let params = as_params(values);
        let done = self.client.borrow_mut().execute(&*statement, &params);
        let count = self.noted(done)?;
        self.changes.set(self.changes.get() + count);
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Reads rows.
    pub(super) fn query(&self, sql: &str, values: &[Value]) -> Done<Vec<Row>> {
        let statement = self.prepare(sql, values)?;
        let params = as_params(values);
        let done = self.client.borrow_mut().query(&*statement, &params);
        self.noted(done)
    }

    /// Does statements without values, in one go.
    pub(super) fn batch(&self, sql: &str) -> Done<()> {
        let done = self.client.borrow_mut().batch_execute(sql);
        self.noted(done)
    }

    /// Waits so long for another session to tell something on a channel that is listened to; returns whether one did.
    pub(super) fn next_notice(&self, wait: Duration) -> Done<bool> {
        let told = self.client.borrow_mut().notifications().timeout_iter(wait).next();
        self.noted(told).map(|notice| notice.is_some())
    }

    /// Returns how many rows were changed over it since it was opened.
    pub(super) const fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Returns how it stands since the last transaction was begun.
    pub(super) fn standing(&self) -> ConnectionStanding {
        if self.client.borrow().is_closed() { ConnectionStanding::Lost } else { self.standing.get() }
    }

    /// Begins to watch how it stands.
    pub(super) fn begin_watch(&self) {
        if self.standing.get() == ConnectionStanding::Collided {
            self.standing.set(ConnectionStanding::Fine);
        }
    }

    /// Notes that somebody else changed what was read before: the transaction is to be done again.
    pub(super) fn collide(&self) -> PostgresError {
        self.standing.set(ConnectionStanding::Collided);
        unavailable("another transaction came in between")
    }

    fn prepare(&self, sql: &str, values: &[Value]) -> Done<Arc<Statement>> {
        if values.iter().any(Value::has_nul) {
            return Err(conflict("a text with a NUL cannot be kept"));
        }
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(Arc::clone(known));
        }
        let prepared = self.client.borrow_mut().prepare(sql);
        let statement = Arc::new(self.noted(prepared)?);
        self.statements.borrow_mut().insert(sql.to_owned(), Arc::clone(&statement));
        Ok(statement)
    }

    fn noted<T>(&self, done: Result<T, Error>) -> Done<T> {
        done.map_err(|error| {
            if is_loss(&error) {
                self.standing.set(ConnectionStanding::Lost);
            } else if is_collision(&error) {
                self.standing.set(ConnectionStanding::Collided);
            }
            PostgresError::Engine(error)
        })
    }
}

fn as_params(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Says that the store was closed.
pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
