//! Acceptance of a message: stores its idempotent reply, the message, and its campaign.

use std::sync::Arc;

use rusqlite::Connection;
use stentor_core::campaign::CampaignState;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::message::Message;
use stentor_core::name::CollapseKey;
use stentor_core::ports::store::{Accepted, AtOnce, Idempotent, IdempotentReply, NewMessage};
use stentor_core::time::Timestamp;

use super::at_once::{Addressed, AtOnceBatch};
use super::rows::Rows;
use super::{app_providers, replies, retained, targets};
use crate::sql::{AcceptedResult, Done, damaged, int, params, run};
use crate::sqlite::fault::repeat;

/// A message with its encoded content, which is not encoded on the thread that writes.
pub(super) struct EncodedMessage {
    pub(super) message: Arc<Message>,
    pub(super) at_once: Option<AtOnce>,
    idempotency: Option<IdempotentReply>,
    spec: Result<String, String>,
}

impl From<NewMessage> for EncodedMessage {
    fn from(NewMessage { message, idempotency, at_once }: NewMessage) -> Self {
        let spec = message.spec.encode().map_err(|error| error.to_string());
        Self { message: Arc::new(message), at_once, idempotency, spec }
    }
}

/// A message that was checked.
enum Checked {
    /// It was stored before, or cannot be.
    Known(Idempotent<Accepted>),
    /// It waits for its due time, or for the starter.
    Waits,
    /// It is sent at once.
    AtOnce(Addressed),
}

/// Stores messages, each as a whole or not at all. Reply i belongs to message i. Fails if a message can be stored only in part.
pub(super) fn accept(connection: &Connection, given: &[&EncodedMessage]) -> Done<Vec<AcceptedResult>> {
    let mut rows = Rows::new(connection);
    let mut begun = AtOnceBatch::new(&mut rows);
    let mut replies = Vec::with_capacity(given.len());
    for new in given {
        replies.push(match check(connection, &begun, new) {
            Ok(checked) => store(connection, &mut begun, new, checked)?,
            // Also where the disk does not read a page: nothing was changed, and the other messages may need other pages.
            Err(fault) => Err(fault.into()),
        });
    }
    begun.close()?;
    Ok(replies)
}

/// Checks everything that can make a message fail, and changes nothing.
fn check(connection: &Connection, begun: &AtOnceBatch<'_, '_>, new: &EncodedMessage) -> Done<Checked> {
    let message = &new.message;
    app_providers::check_app(connection, message.app)?;
    // Before the target is checked: a repeat gets its first answer even if the device is gone since.
    if let Some(given) = &new.idempotency
        && let Some(known) = replies::replay(connection, message.app, &given.key, &given.request_hash)?
    {
        return Ok(Checked::Known(replies::as_replayed(known)));
    }
    if let Some(at_once) = &new.at_once
        && let Some(addressed) = begun.addressed(message, at_once)?
    {
        return Ok(Checked::AtOnce(addressed));
    }
    targets::check_target(connection, message.app, &message.spec.target)?;
    Ok(Checked::Waits)
}

/// Stores a checked message. Its row comes first: if its id is in use, nothing else is written.
fn store(
    connection: &Connection,
    begun: &mut AtOnceBatch<'_, '_>,
    new: &EncodedMessage,
    checked: Checked,
) -> Done<AcceptedResult> {
    let message = &new.message;
    let addressed = match checked {
        Checked::Known(known) => return Ok(Ok(known)),
        Checked::Waits => None,
        Checked::AtOnce(addressed) => Some(addressed),
    };
    let beginning = match &addressed {
        Some(addressed) => Some((begun.bound(addressed)?, addressed.lease.now)),
        None => None,
    };
    let spec = match &new.spec {
        Ok(spec) => spec,
        Err(problem) => return Ok(Err(damaged(problem).into())),
    };
    match insert(connection, message, spec, beginning) {
        Err(fault) if fault.is_conflict() => return Ok(Err(fault.into())),
        done => done?,
    }
    if let Some(given) = &new.idempotency {
        keep_reply(connection, message.app, given, message.created_at)?;
    }
    Ok(Ok(Idempotent::Done(match addressed {
        Some(addressed) => Accepted::Leased(begun.begin(message, addressed)?),
        None => Accepted::Waits,
    })))
}

/// Stores the reply to repeated requests.
pub(super) fn keep_reply(
    connection: &Connection,
    app: AppId,
    given: &IdempotentReply,
    now: Timestamp,
) -> Done<()> {
    // Older versions kept a status of HTTP here. The contract has none, and their bodies are records as well.
    let sql = "INSERT INTO replies (app, key, request_hash, status, body, created_at) VALUES (?1, ?2, ?3, 0, ?4, ?5)";
    let (key, record) = (given.key.as_str(), &given.reply.record);
    let values = params![int(app.raw()), key, given.request_hash, record, now.as_millis()];
    run(connection, sql, values).map(drop)
}

/// Writes a message with its encoded content `spec`, and its campaign. The campaign waits for its due time, unless the bound of its audience
/// and the time of its first lease are given.
pub(super) fn insert(
    connection: &Connection,
    message: &Message,
    spec: &str,
    begun: Option<(DeviceId, Timestamp)>,
) -> Done<()> {
    let (id, app) = (int(message.id.raw()), int(message.app.raw()));
    let (created_at, due_at) = (message.created_at.as_millis(), message.due_at.as_millis());
    let (schedule, instant) = message.occurrence.unzip();
    let (schedule, instant) = (schedule.map(|id| int(id.raw())), instant.map(Timestamp::as_millis));
    let sql = "INSERT INTO messages (id, app, created_at, due_at, schedule, instant, spec) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let values = params![id, app, created_at, due_at, schedule, instant, spec];
    run(connection, sql, values).map_err(|fault| repeat(fault, "the message id is in use"))?;
    let sql = "INSERT INTO campaigns (id, app, state, class, created_at, due_at, expires_at, collapse_key, retained_topic,
        retained_place, as_of, started_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let state = if begun.is_some() { CampaignState::Running } else { CampaignState::Scheduled };
    let (as_of, started_at) = begun.unzip();
    let (as_of, started_at) = (as_of.map(|id| int(id.raw())), started_at.map(Timestamp::as_millis));
    let class = message.spec.target.class().code();
    let (expires_at, key) =
        (message.expires_at().as_millis(), message.spec.collapse_key.as_ref().map(CollapseKey::as_str));
    let (topic, place) = retained::of(message).unzip();
    let values = params![
        id,
        app,
        state.code(),
        class,
        created_at,
        due_at,
        expires_at,
        key,
        topic,
        place,
        as_of,
        started_at
    ];
    run(connection, sql, values).map(drop)
}
