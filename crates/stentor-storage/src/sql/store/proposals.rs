//! Messages that wait for an approval.

use async_trait::async_trait;
use stentor_core::id::{AppId, MessageId, ProposalId};
use stentor_core::limits::PROPOSALS_PER_APP_MAX_COUNT;
use stentor_core::message::Message;
use stentor_core::person::Person;
use stentor_core::ports::store::{Changed, Listed, Page, ProposalStore, StoreError};
use stentor_core::proposal::Proposal;
use stentor_core::time::Timestamp;

use super::authors::{author, author_columns};
use super::{app_providers, message_rows};
use crate::sql::{
    Connection, Done, Row, SqlEngine, SqlStore, damaged, found, int, limit, listed, maybe_number, maybe_time,
    missing, number, one, params, run, time, unless_repeat,
};

const SELECT: &str = "SELECT id, app, spec, send_at, exact, device_count, created_at, expires_at, message, key, person, person_name
    FROM proposals";

#[async_trait]
impl<E: SqlEngine> ProposalStore for SqlStore<E> {
    async fn proposal(&self, app: AppId, id: ProposalId, now: Timestamp) -> Result<Proposal, StoreError> {
        self.read(move |connection| find(connection, app, id, now)).await
    }

    async fn proposals(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Listed<Proposal, ProposalId>, StoreError> {
        self.read(move |connection| {
            let sql = format!(
                "{SELECT} WHERE app = ?1 AND id > ?2 AND expires_at > ?3 AND message IS NULL ORDER BY id"
            );
            let rows = (sql.as_str(), [int(app.raw()), int(page.after), now.as_millis()]);
            listed(connection, "proposals", rows, page.limit, read, ProposalId::from_raw)
        })
        .await
    }
}

/// Stores a proposal; expired proposals of the app make room first.
pub(crate) fn create(connection: &Connection, proposal: &Proposal) -> Done<()> {
    let (app, now) = (int(proposal.app.raw()), proposal.created_at.as_millis());
    app_providers::check_app(connection, proposal.app)?;
    run(connection, "DELETE FROM proposals WHERE app = ?1 AND expires_at <= ?2", [app, now])?;
    let sql = "SELECT count(*) FROM proposals WHERE app = ?1 AND message IS NULL";
    let waiting = one(connection, sql, [app], |row| number(row, 0))?.unwrap_or_default();
    if waiting >= PROPOSALS_PER_APP_MAX_COUNT as u64 {
        let why = format!("at most {PROPOSALS_PER_APP_MAX_COUNT} messages of an app wait for an approval");
        return Err(StoreError::LimitReached(why).into());
    }
    let sql = "INSERT INTO proposals (id, app, key, person, person_name, spec, send_at, exact, device_count, created_at, expires_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING";
    let (key, person) = author_columns(&proposal.author);
    let values = params![
        int(proposal.id.raw()),
        app,
        key,
        person.map(Person::subject),
        person.map(Person::name),
        proposal.spec.encode().map_err(|error| damaged(&error.to_string()))?,
        proposal.send_at.map(Timestamp::as_millis),
        u8::from(proposal.exact),
        int(proposal.device_count),
        now,
        proposal.expires_at.as_millis(),
    ];
    run(connection, sql, values).and_then(|inserted| unless_repeat(inserted, "the proposal id is in use"))
}

/// Stores the message of a proposal, once.
pub(crate) fn approve(connection: &Connection, id: ProposalId, message: &Message) -> Done<Changed> {
    let proposal = find(connection, message.app, id, message.created_at)?;
    if let Some(message) = proposal.message {
        return Ok(Changed::Approved { message, is_repeat: true });
    }
    // The condition is for PostgreSQL, where another transaction may have approved it since the row was read.
    let sql = "UPDATE proposals SET message = ?2 WHERE id = ?1 AND message IS NULL";
    let approved = run(connection, sql, [int(id.raw()), int(message.id.raw())])?;
    unless_repeat(approved, "the proposal was approved at the same time")?;
    connection.insert_message(message)?;
    connection.wake_others();
    Ok(Changed::Approved { message: message.id, is_repeat: false })
}

/// Deletes a proposal.
pub(crate) fn delete(connection: &Connection, app: AppId, id: ProposalId) -> Done<()> {
    let sql = "DELETE FROM proposals WHERE id = ?1 AND app = ?2";
    found(run(connection, sql, [int(id.raw()), int(app.raw())])?, "proposal")
}

/// Deletes proposals that expired before an instant; returns their number.
pub(crate) fn prune(connection: &Connection, expired_before: Timestamp, count: usize) -> Done<u64> {
    let sql = "DELETE FROM proposals WHERE id IN (SELECT id FROM proposals WHERE expires_at <= ?1 ORDER BY id LIMIT ?2)";
    Ok(run(connection, sql, [expired_before.as_millis(), limit(count)])? as u64)
}

fn find(connection: &Connection, app: AppId, id: ProposalId, now: Timestamp) -> Done<Proposal> {
    let sql = format!("{SELECT} WHERE id = ?1 AND app = ?2 AND expires_at > ?3");
    let key = [int(id.raw()), int(app.raw()), now.as_millis()];
    one(connection, &sql, key, read)?.ok_or(missing("proposal"))
}

fn read(row: &Row<'_>) -> Done<Proposal> {
    Ok(Proposal {
        id: ProposalId::from_raw(number(row, 0)?),
        app: AppId::from_raw(number(row, 1)?),
        author: author(row, 9, 10)?,
        spec: message_rows::spec(row, 2)?,
        send_at: maybe_time(row, 3)?,
        exact: number(row, 4)? != 0,
        device_count: number(row, 5)?,
        created_at: time(row, 6)?,
        expires_at: time(row, 7)?,
        message: maybe_number(row, 8)?.map(MessageId::from_raw),
    })
}
