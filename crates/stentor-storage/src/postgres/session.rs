//! One session at the server, in which every wait has an end: a connection that falls silent is given up, and never used again.
//!
//! The driver is asynchronous, and the engine's threads are not: each session has a runtime of its own, which runs only while its thread
//! waits for an answer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::sql::{Done, SqlError, unavailable};
use futures_util::{SinkExt as _, Stream, StreamExt as _};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::{AsyncMessage, Client, Config, Error, Row, SimpleQueryMessage, Socket, Statement};

/// The longest time for closing a session in order.
const FAREWELL: Duration = Duration::from_millis(500);
/// The longest duration of a cancel request, and of the wait for its effect.
const CANCEL: Duration = Duration::from_secs(1);
/// The largest number of notifications that wait to be taken.
const WORDS_MAX_COUNT: usize = 1_024;

const CLOSED: &str = "the connection is closed";

type Incoming = Pin<Box<dyn Stream<Item = Result<AsyncMessage, Error>> + Send>>;

/// A session, which lives and ends on one thread.
pub(super) struct DatabaseSession {
    /// `None` once it has ended.
    client: Option<Client>,
    line: SessionLine,
    /// Sends a cancel request to the server, over a connection of its own.
    cancel: Box<dyn Fn(&Runtime) + Send>,
    /// Longest wait for an answer.
    patience: Duration,
    is_silent: bool,
}

/// The stream of the server's messages.
struct SessionLine {
    runtime: Runtime,
    incoming: Incoming,
    received: ReceivedWords,
}

/// Messages between the answers.
#[derive(Default)]
struct ReceivedWords {
    /// Notifications of other sessions.
    words: VecDeque<String>,
    /// The last warning.
    warning: Option<String>,
}

impl DatabaseSession {
    /// Connects and executes the first statements, all within `wait`; later answers are waited for up to `patience`.
    pub(super) fn open<T>(
        config: &Config,
        tls: T,
        first: &str,
        (wait, patience): (Duration, Duration),
    ) -> Done<Self>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + 'static,
        T::TlsConnect: Send,
        T::Stream: Send + 'static,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unavailable(error.to_string()))?;
        let connecting = async { tokio::time::timeout(wait, config.connect(tls.clone())).await };
        let connected = runtime.block_on(connecting).map_err(|_| no_answer(wait))?;
        let (client, mut connection) = connected.map_err(SqlError::Postgres)?;
        let incoming = futures_util::stream::poll_fn(move |context| connection.poll_message(context));
        let line = SessionLine { runtime, incoming: Box::pin(incoming), received: ReceivedWords::default() };
        let token = client.cancel_token();
        let cancel = move |runtime: &Runtime| {
            let canceling = token.cancel_query(tls.clone());
            // If the request fails, the server counts as silent, like this session.
            let _ = runtime.block_on(async { tokio::time::timeout(CANCEL, canceling).await });
        };
        let cancel = Box::new(cancel);
        let mut session = Self { client: Some(client), line, cancel, patience: wait, is_silent: false };
        session.simple_query(first)?;
        session.patience = patience;
        Ok(session)
    }

    /// Executes a prepared statement; returns the number of rows changed.
    pub(super) fn execute(&mut self, statement: &Statement, values: &[&(dyn ToSql + Sync)]) -> Done<u64> {
        self.ask(async |client| client.execute(statement, values).await)
    }

    /// Reads rows by a prepared statement.
    pub(super) fn query(&mut self, statement: &Statement, values: &[&(dyn ToSql + Sync)]) -> Done<Vec<Row>> {
        self.ask(async |client| client.query(statement, values).await)
    }

    /// Prepares a statement.
    pub(super) fn prepare(&mut self, sql: &str) -> Done<Statement> {
        self.ask(async |client| client.prepare(sql).await)
    }

    /// Executes statements without values.
    pub(super) fn simple_query(&mut self, sql: &str) -> Done<Vec<SimpleQueryMessage>> {
        self.ask(async |client| client.simple_query(sql).await)
    }

    /// Appends rows by a prepared `COPY`; returns their number.
    pub(super) fn copy_in(&mut self, statement: &Statement, bytes: &[u8]) -> Done<u64> {
        self.ask(async |client| {
            let mut sink = pin!(client.copy_in::<_, BytesMut>(statement).await?);
            sink.send(BytesMut::from(bytes)).await?;
            sink.finish().await
        })
    }

    /// Waits up to `wait` for a notification of another session.
    pub(super) fn next_word(&mut self, wait: Duration) -> Done<Option<String>> {
        let arrival = self.line.wait(wait, poll_fn(|_| Poll::Pending::<Result<(), Error>>), true);
        match arrival {
            Some(Err(error)) => Err(SqlError::Postgres(error)),
            // The driver reports the end of the connection only once.
            _ if self.is_closed() => Err(unavailable(CLOSED)),
            Some(Ok(())) | None => Ok(self.line.received.words.pop_front()),
        }
    }

    /// Takes the last warning that the server gave.
    pub(super) fn take_warning(&mut self) -> Option<String> {
        self.line.received.warning.take()
    }

    /// Sets the longest wait for later answers; returns the former one.
    pub(super) const fn set_patience(&mut self, patience: Duration) -> Duration {
        std::mem::replace(&mut self.patience, patience)
    }

    /// Returns true if no more statements can be sent.
    pub(super) fn is_closed(&self) -> bool {
        self.is_silent || self.client.as_ref().is_none_or(Client::is_closed)
    }

    /// Returns true if an answer did not come in time.
    pub(super) const fn is_silent(&self) -> bool {
        self.is_silent
    }

    fn ask<T>(&mut self, work: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Done<T> {
        let Some(client) = self.client.as_ref().filter(|_| !self.is_silent) else {
            return Err(unavailable(CLOSED));
        };
        let mut work = pin!(work(client));
        if let Some(done) = self.line.wait(self.patience, work.as_mut(), false) {
            return done.map_err(SqlError::Postgres);
        }
        // A server that is merely slow cancels the statement, even a commit's wait for a standby, and the session stays usable.
        (self.cancel)(&self.line.runtime);
        if let Some(done) = self.line.wait(CANCEL, work, false) {
            return done.map_err(SqlError::Postgres);
        }
        // A later answer would belong to a statement that was given up.
        self.is_silent = true;
        Err(no_answer(self.patience))
    }
}

impl SessionLine {
    /// Waits for work, or for a notification of another session if requested; `None` if neither came in time.
    fn wait<T>(
        &mut self,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
        wants_words: bool,
    ) -> Option<Result<T, Error>> {
        let Self { runtime, incoming, received } = self;
        let mut work = pin!(work);
        let both = poll_fn(|context| match received.listen(incoming, context) {
            Err(error) => Poll::Ready(Some(Err(error))),
            Ok(()) if wants_words && !received.words.is_empty() => Poll::Ready(None),
            Ok(()) => work.as_mut().poll(context).map(Some),
        });
        runtime.block_on(async { tokio::time::timeout(limit, both).await }).unwrap_or(None)
    }
}

impl ReceivedWords {
    /// Handles all messages that have arrived.
    fn listen(&mut self, incoming: &mut Incoming, context: &mut Context<'_>) -> Result<(), Error> {
        while let Poll::Ready(Some(message)) = incoming.poll_next_unpin(context) {
            match message? {
                AsyncMessage::Notification(notification) if self.words.len() < WORDS_MAX_COUNT => {
                    self.words.push_back(notification.payload().to_owned());
                }
                AsyncMessage::Notice(notice) => self.note(&notice),
                _ => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, notice: &DbError) {
        if notice.parsed_severity().is_none_or(|severity| severity == Severity::Warning) {
            self.warning = Some(notice.message().to_owned());
        }
    }
}

impl Drop for DatabaseSession {
    fn drop(&mut self) {
        let is_closed = self.is_closed();
        // The driver ends the session in order once the client is dropped.
        drop(self.client.take());
        if is_closed {
            return;
        }
        let SessionLine { runtime, incoming, .. } = &mut self.line;
        let farewell = async { while let Some(Ok(_)) = incoming.next().await {} };
        // A server that does not receive it notices the end of the connection.
        let _ = runtime.block_on(async { tokio::time::timeout(FAREWELL, farewell).await });
    }
}

fn no_answer(waited: Duration) -> SqlError {
    let waited = waited.as_millis();
    unavailable(format!(
        "the database gave no answer for {waited} ms: it is stopped, overloaded or cut off, or a pooler before it has no connection free"
    ))
}
