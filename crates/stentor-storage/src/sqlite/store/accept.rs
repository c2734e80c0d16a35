//! Acceptance of a message: stores its idempotent reply, the message, and its campaign.

use std::sync::Arc;

use rusqlite::Connection;
use stentor_core::campaign::CampaignState;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::message::Message;
use stentor_core::name::CollapseKey;
use stentor_core::ports::store::{Accepted, Idempotent, IdempotentReply, NewMessage};
use stentor_core::time::Timestamp;

use super::{app_providers, at_once, replies, retained, targets};
use crate::sql::{Done, int, params, run};
use crate::sqlite::fault::repeat;

/// Stores one message with its encoded content `spec`; all checks come first.
pub(super) fn accept(connection: &Connection, new: NewMessage, spec: &str) -> Done<Idempotent<Accepted>> {
    let message = &new.message;
    app_providers::check_app(connection, message.app)?;
    // Before the target is checked: a repeat gets its first answer even if the device is gone since.
    if let Some(given) = &new.idempotency
        && let Some(known) = replies::replay(connection, message.app, &given.key, &given.request_hash)?
    {
        return Ok(replies::as_replayed(known));
    }
    let addressed = match &new.at_once {
        Some(at_once) => at_once::addressed(connection, message, at_once)?,
        None => None,
    };
    let begun = match &addressed {
        Some(found) => Some((found.make_device()?, found.lease.now)),
        None => targets::check_target(connection, message.app, &message.spec.target).map(|()| None)?,
    };
    insert(connection, message, spec, begun)?;
    if let Some(given) = &new.idempotency {
        keep_reply(connection, message.app, given, message.created_at)?;
    }
    Ok(Idempotent::Done(match addressed {
        Some(found) => Accepted::Leased(found.begin(Arc::new(new.message))?),
        None => Accepted::Waits,
    }))
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
