//! Changes with their entries in the audit trail, each pair in one transaction.

use stentor_core::audit::{Actor, AuditAction, AuditEntry, AuditNote};
use stentor_core::id::{AppId, AuditId};
use stentor_core::ledger;
use stentor_core::name::Label;
use stentor_core::person::Person;
use stentor_core::ports::store::{
    AuditFilter, AuditStore, Change, Changed, Idempotent, NewAuditEntry, Page, StoreError,
};
use stentor_core::time::Timestamp;

use super::authors::{author, author_columns};
use super::{accounts, apps, proposals, removal, schedules, webhooks};
use crate::sql::{
    Connection, Done, EngineParts as _, LedgerEngine, Row, SqlStore, code, damaged, int, limit, maybe_text,
    number, one, params, readable, run, time,
};

/// The value that stands for no app.
const NO_APP: i64 = -1;
/// The kind of refused changes.
const REFUSED: u8 = 2;

#[async_trait::async_trait]
impl<E: LedgerEngine> AuditStore for SqlStore<E> {
    async fn change(&self, change: Change, entry: Option<NewAuditEntry>) -> Result<Changed, StoreError> {
        // Sealed here, on the thread of the caller: no statement contains a secret in clear, and the writer thread does not spend time on
        // it.
        let change = match change {
            Change::PutCredential(credential) => Change::PutCredential(self.vault().seal(credential)?),
            Change::PutUpstreamWebhook(webhook) => {
                Change::PutUpstreamWebhook(self.vault().seal_webhook(webhook)?)
            }
            other => other,
        };
        let act = match &change {
            Change::Act(_, _, action, now) => Some((*action, *now)),
            _ => None,
        };
        let changed = self.write(move |connection| {
            // Before the change, which may delete the key of its author.
            let name = entry.as_ref().map(|entry| key_name(connection, &entry.note.actor)).transpose()?;
            let changed = apply::<E>(connection, change.clone())?;
            // A repeat changes nothing, and its first request has an entry.
            let is_made = !matches!(
                changed,
                Changed::Stored(Idempotent::Replayed(_) | Idempotent::KeyReused)
                    | Changed::Approved { is_repeat: true, .. }
            );
            if let Some(entry) = entry.as_ref().filter(|_| is_made) {
                insert(connection, entry, name.flatten().as_ref())?;
            }
            connection.report_change(&change);
            Ok(changed)
        });
        match (changed.await?, act) {
            // The rest of a campaign follows in portions, each a transaction of its own, when the entry is on disk.
            (Changed::Campaign(campaign, _), Some((action, now))) => {
                let (campaign, tickets) = self.after_act(*campaign, action, now).await?;
                Ok(Changed::Campaign(Box::new(campaign), tickets))
            }
            (changed, _) => Ok(changed),
        }
    }

    async fn audit(&self, filter: AuditFilter, page: Page) -> Result<Vec<AuditEntry>, StoreError> {
        self.read(move |connection| list(connection, filter, page)).await
    }
}

/// Deletes entries from before an instant; returns their number.
pub(crate) fn prune(connection: &Connection, before: Timestamp, count: usize) -> Done<u64> {
    let sql = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 ORDER BY at LIMIT ?2)";
    Ok(run(connection, sql, [before.as_millis(), limit(count)])? as u64)
}

fn apply<E: LedgerEngine>(connection: &E::Connection, change: Change) -> Done<Changed> {
    match change {
        Change::CreateApp(app) => apps::create_app(connection, &app)?,
        Change::DeleteApp(app, precondition) => {
            precondition.check(|| apps::find(connection, app).map(Some))?;
            removal::app(connection, app)?;
        }
        Change::CreateKey(key) => apps::create_key(connection, &key)?,
        Change::DeleteKey(app, key) => apps::delete_key(connection, app, key)?,
        Change::CreateAccount(account) => accounts::create(connection, &account)?,
        Change::DeleteAccount(app, id) => accounts::delete(connection, app, id)?,
        Change::PutCredential(sealed) => apps::put_credential(connection, &sealed)?,
        Change::DeleteCredential(app, provider) => apps::delete_credential(connection, app, provider)?,
        Change::PutUpstreamWebhook(sealed) => webhooks::put(connection, &sealed)?,
        Change::DeleteUpstreamWebhook(app) => webhooks::delete(connection, app)?,
        Change::CreateSchedule(new) => return schedules::create(connection, &new).map(Changed::Stored),
        Change::SetSchedule(app, id, state, next_due) => {
            let schedule = schedules::change(connection, app, id, state, next_due)?;
            return Ok(Changed::Schedule(Box::new(schedule)));
        }
        Change::DeleteSchedule(app, id, precondition) => {
            schedules::delete(connection, app, id, &precondition)?;
        }
        Change::Refused => {}
        Change::DeleteBrokenSchedule(app, id) => schedules::delete_broken(connection, app, id)?,
        Change::CreateProposal(proposal) => proposals::create(connection, &proposal)?,
        Change::ApproveProposal(id, message) => return proposals::approve(connection, id, &message),
        Change::DeleteProposal(app, id) => proposals::delete(connection, app, id)?,
        Change::Act(app, id, action, now) => {
            let campaign = ledger::act(&mut E::rows(connection), (app, id), action, now)?;
            return Ok(Changed::Campaign(Box::new(campaign), Vec::new()));
        }
    }
    Ok(Changed::Done)
}

fn key_name(connection: &Connection, actor: &Actor) -> Done<Option<Label>> {
    let Actor::Key(key) = actor else { return Ok(None) };
    let sql = "SELECT name FROM api_keys WHERE id = ?1 UNION ALL SELECT name FROM accounts WHERE id = ?1";
    Ok(one(connection, sql, [int(key.raw())], |row| maybe_text(row, 0, Label::new))?.flatten())
}

/// Stores an entry in the next place of its kind and app, and deletes those too many places behind.
fn insert(connection: &Connection, entry: &NewAuditEntry, name: Option<&Label>) -> Done<()> {
    let NewAuditEntry { note, max_count } = entry;
    let (app, kind) = (note.app.map_or(NO_APP, |app| int(app.raw())), note.kind());
    // Places are counted within app and kind, so that an entry displaces only entries of its own kind.
    let sql = "SELECT coalesce(max(place), 0) + 1 FROM audit WHERE app = ?1 AND kind = ?2";
    let place = one(connection, sql, params![app, kind], |row| number(row, 0))?.unwrap_or(1);
    let (key, person) = author_columns(&note.actor);
    let sql =
        "INSERT INTO audit (id, at, kind, app, place, key, key_name, action, thing, detail, address, request_id, person, person_name)
        VALUES (?12, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?13, ?14)";
    let values = params![
        note.at.as_millis(),
        kind,
        app,
        int(place),
        key,
        name.map(Label::as_str),
        note.action.code(),
        &note.thing,
        &note.detail,
        note.address.map(|address| address.to_string()),
        &note.request_id,
        connection.next_audit_entry()?,
        person.map(Person::subject),
        person.map(Person::name),
    ];
    run(connection, sql, values)?;
    let sql = "DELETE FROM audit WHERE app = ?1 AND kind = ?2 AND place <= ?3";
    run(connection, sql, params![app, kind, int(place.saturating_sub(*max_count))]).map(drop)
}

fn list(connection: &Connection, filter: AuditFilter, page: Page) -> Done<Vec<AuditEntry>> {
    // The condition stands in the text, so that the index by app serves the list of one app.
    let of_app = if filter.app.is_some() { "app = ?1" } else { "CAST(?1 AS BIGINT) IS NULL" };
    let sql = format!(
        "SELECT id, at, kind, app, key, key_name, action, thing, detail, address, request_id, person, person_name FROM audit
        WHERE {of_app} AND id < ?2 AND (CAST(?3 AS SMALLINT) IS NULL OR action = ?3) AND at >= ?4 ORDER BY id DESC"
    );
    let below = if page.after == 0 { i64::MAX } else { int(page.after) };
    let since = filter.since.map_or(i64::MIN, Timestamp::as_millis);
    let (app, action) = (filter.app.map(|app| int(app.raw())), filter.action.map(AuditAction::code));
    let values = params![app, below, action, since];
    Ok(readable(connection, "audit", (&sql, values), page.limit, read)?.0)
}

fn read(row: &Row<'_>) -> Done<AuditEntry> {
    let (kind, app): (u8, i64) = (row.get(2)?, row.get(3)?);
    let address: Option<String> = row.get(9)?;
    let address = address.map(|text| text.parse()).transpose();
    let note = AuditNote {
        at: time(row, 1)?,
        actor: author(row, 4, 11)?,
        app: u64::try_from(app).ok().map(AppId::from_raw),
        action: code(row, 6, AuditAction::from_code)?,
        thing: row.get(7)?,
        detail: row.get(8)?,
        address: address.map_err(|_| damaged("an address that is none"))?,
        request_id: row.get(10)?,
        refused: kind == REFUSED,
    };
    Ok(AuditEntry { id: AuditId::from_raw(number(row, 0)?), note, key_name: maybe_text(row, 5, Label::new)? })
}
