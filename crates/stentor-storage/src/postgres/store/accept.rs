//! Acceptance of messages: stores idempotent replies, messages and their campaigns, many of them with a few statements.

use std::collections::{HashMap, HashSet};

use stentor_core::campaign::CampaignState;
use stentor_core::id::{AppId, DeviceId, MessageId};
use stentor_core::message::Message;
use stentor_core::name::CollapseKey;
use stentor_core::ports::store::{
    Accepted, Idempotent, IdempotentReply, LeaseTerms, NewMessage, StoreError, StoredReply,
};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::named_devices::NamedDevices;
use super::rows::Rows;
use super::{at_once, retained, sequences, targets};
use crate::postgres::engine::Connection;
use crate::postgres::transactor::STANDBY_NOTE;
use crate::sql::{
    AcceptedResult, Done, Row, Value, all, conflict, damaged, hash, int, missing, number, params, run,
};

/// The stored apps and idempotency keys that messages refer to.
#[derive(Default)]
struct KnownBefore {
    apps: HashSet<u64>,
    replies: HashMap<(u64, String), ([u8; 32], StoredReply)>,
    ids: HashSet<MessageId>,
    named: NamedDevices,
}

/// Stores messages, each as a whole or not at all; all checks come first. Reply i belongs to message i. `own` is the instance of this node,
/// if it has joined the others.
pub(super) fn accept(
    connection: &Connection,
    given: &[&NewMessage],
    own: Option<u64>,
) -> Done<Vec<AcceptedResult>> {
    let rows = Rows::new(connection);
    let mut known = KnownBefore::read(connection, given)?;
    let mut replies = Vec::with_capacity(given.len());
    let mut results = Vec::with_capacity(given.len());
    for new in given {
        let reply = known.check(connection, new);
        if matches!(reply, Ok(Idempotent::Done(_))) {
            results.push(*new);
        }
        replies.push(reply.map_err(StoreError::from));
    }
    if replies.iter().any(|reply| matches!(reply, Ok(Idempotent::Replayed(_)))) {
        // The first answer may have been an error because the standby did not have it. A commit that writes nothing would not wait for the
        // standby.
        connection.defer(STANDBY_NOTE);
    }
    let idempotent = results.iter().filter_map(|new| Some((&new.message, new.idempotency.as_ref()?)));
    let idempotent = idempotent.map(|(message, given)| (message.app, given, message.created_at));
    keep_replies(connection, &idempotent.collect::<Vec<_>>())?;
    let addressed = at_once::addressed(&rows, &results, known.named, own)?;
    let terms = |new: &NewMessage| {
        let at_once = new.at_once.as_ref()?;
        addressed.contains_key(&new.message.id).then_some(at_once.lease)
    };
    let messages: Vec<_> = results.iter().map(|new| (&new.message, terms(new))).collect();
    let inserted = insert_all(connection, &messages)?;
    let leased = messages.iter().filter(|(message, _)| inserted.contains(&message.id));
    let leased: Vec<_> = leased.filter_map(|(message, terms)| Some((*message, (*terms)?))).collect();
    let mut leased = at_once::begin(rows, &leased, addressed)?;
    for (new, reply) in given.iter().zip(&mut replies) {
        if let Ok(Idempotent::Done(stored)) = reply {
            match leased.remove(&new.message.id) {
                _ if !inserted.contains(&new.message.id) => {
                    *reply = Err(StoreError::Conflict(ID_IN_USE.to_owned()));
                }
                Some(chunks) => *stored = Accepted::Leased(chunks),
                None => {}
            }
        }
    }
    Ok(replies)
}

const ID_IN_USE: &str = "the message id is in use";

impl KnownBefore {
    fn read(connection: &Connection, given: &[&NewMessage]) -> Done<Self> {
        let mut apps: Vec<i64> = given.iter().map(|new| int(new.message.app.raw())).collect();
        apps.sort_unstable();
        apps.dedup();
        // Locked until the end: the removal of an app waits for its messages, and removes them too.
        let sql = "SELECT id FROM apps WHERE id = ANY($1) ORDER BY id FOR KEY SHARE";
        let apps = all(connection, sql, params![apps], |row| number(row, 0))?;
        let keys = given.iter().filter_map(|new| Some((new.message.app, &new.idempotency.as_ref()?.key)));
        let (of, keys): (Vec<i64>, Vec<Option<String>>) =
            keys.map(|(app, key)| (int(app.raw()), Some(key.as_str().to_owned()))).unzip();
        let mut replies = HashMap::new();
        if !of.is_empty() {
            let sql = "SELECT r.app, r.key, r.request_hash, r.body FROM replies r
                JOIN unnest($1::bigint[], $2::text[]) given (app, key) ON given.app = r.app AND given.key = r.key";
            let read = |row: &Row<'_>| {
                let reply = StoredReply { record: row.get(3)? };
                Ok(((number(row, 0)?, row.get(1)?), (hash(row, 2)?, reply)))
            };
            replies.extend(all(connection, sql, vec![of.into(), Value::Texts(keys)], read)?);
        }
        let named = NamedDevices::by_id(connection, given.iter().map(|new| &new.message))?;
        Ok(Self { apps: apps.into_iter().collect(), replies, ids: HashSet::new(), named })
    }

    /// Decides on a message by the stored rows and the messages before it.
    fn check(&mut self, connection: &Connection, new: &NewMessage) -> Done<Idempotent<Accepted>> {
        let message = &new.message;
        let app = message.app.raw();
        if !self.apps.contains(&app) {
            return Err(missing("app"));
        }
        let key = new.idempotency.as_ref().map(|given| (app, given.key.as_str().to_owned()));
        // Before the target is checked: a repeat gets its first reply, even if the target is gone.
        if let (Some(key), Some(given)) = (&key, &new.idempotency)
            && let Some((hash, reply)) = self.replies.get(key)
        {
            return Ok(match *hash == given.request_hash {
                true => Idempotent::Replayed(reply.clone()),
                false => Idempotent::KeyReused,
            });
        }
        let is_known = |id: &DeviceId| self.named.key(message.app, *id).map(drop).ok_or(missing("device"));
        match &message.spec.target {
            Target::Device(id) => is_known(id)?,
            Target::Devices(ids) => ids.iter().try_for_each(is_known)?,
            other => targets::check_target(connection, message.app, other)?,
        }
        if !self.ids.insert(message.id) {
            return Err(conflict(ID_IN_USE));
        }
        // A repeat in the same list is answered like a later one.
        if let (Some(key), Some(given)) = (key, &new.idempotency) {
            self.replies.insert(key, (given.request_hash, given.reply.clone()));
        }
        Ok(Idempotent::Done(Accepted::Waits))
    }
}

/// Stores the reply to repeated requests.
pub(super) fn keep_reply(
    connection: &Connection,
    app: AppId,
    given: &IdempotentReply,
    now: Timestamp,
) -> Done<()> {
    keep_replies(connection, &[(app, given, now)])
}

/// Stores replies under keys that were unused when read. If another transaction has used one since, the transaction is repeated.
fn keep_replies(connection: &Connection, given: &[(AppId, &IdempotentReply, Timestamp)]) -> Done<()> {
    if given.is_empty() {
        return Ok(());
    }
    let text = |text: &str| Some(text.to_owned());
    let values = vec![
        Value::Ints(given.iter().map(|(app, ..)| Some(int(app.raw()))).collect()),
        Value::Ints(given.iter().map(|(_, _, now)| Some(now.as_millis())).collect()),
        Value::Texts(given.iter().map(|(_, reply, _)| text(reply.key.as_str())).collect()),
        Value::Blobs(given.iter().map(|(_, reply, _)| reply.request_hash.to_vec()).collect()),
        Value::Texts(given.iter().map(|(_, reply, _)| text(&reply.reply.record)).collect()),
    ];
    let sql = "INSERT INTO replies (app, created_at, key, request_hash, body)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[], $5::text[]) ON CONFLICT DO NOTHING";
    if run(connection, sql, values)? < given.len() { Err(connection.collide()) } else { Ok(()) }
}

/// Writes a message and its campaign; it waits for its due time.
pub(super) fn insert(connection: &Connection, message: &Message) -> Done<()> {
    if insert_all(connection, &[(message, None)])?.is_empty() { Err(conflict(ID_IN_USE)) } else { Ok(()) }
}

/// Inserts messages and their campaigns; returns the ids that were not in use. The campaigns with terms of a lease run, the others wait.
fn insert_all(
    connection: &Connection,
    messages: &[(&Message, Option<LeaseTerms>)],
) -> Done<HashSet<MessageId>> {
    if messages.is_empty() {
        return Ok(HashSet::new());
    }
    let begins = messages.iter().any(|(_, terms)| terms.is_some());
    let as_of = begins.then(|| sequences::last_device(connection)).transpose()?;
    let started_at = messages.iter().map(|(_, terms)| terms.map(|terms| terms.now.as_millis()));
    let started_at = Value::Ints(started_at.collect());
    let messages: Vec<&Message> = messages.iter().map(|(message, _)| *message).collect();
    let ints = |read: &dyn Fn(&Message) -> Option<i64>| {
        Value::Ints(messages.iter().map(|message| read(message)).collect())
    };
    let id = || ints(&|message| Some(int(message.id.raw())));
    let specs = messages.iter().map(|message| message.spec.encode().map(Some)).collect::<Result<_, _>>();
    let specs = specs.map_err(|error| damaged(&error.to_string()))?;
    let sql = "INSERT INTO messages (id, app, created_at, due_at, schedule, instant, spec)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[])
        ON CONFLICT DO NOTHING RETURNING id";
    let values = vec![
        id(),
        ints(&|message| Some(int(message.app.raw()))),
        ints(&|message| Some(message.created_at.as_millis())),
        ints(&|message| Some(message.due_at.as_millis())),
        ints(&|message| message.occurrence.map(|(schedule, _)| int(schedule.raw()))),
        ints(&|message| message.occurrence.map(|(_, instant)| instant.as_millis())),
        Value::Texts(specs),
    ];
    let inserted = all(connection, sql, values, |row| Ok(MessageId::from_raw(number(row, 0)?)))?;
    let sql = "INSERT INTO campaigns (id, app, created_at, due_at, expires_at, state, class, collapse_key, retained_topic,
            retained_place, started_at, as_of)
        SELECT m.id, m.app, m.created_at, m.due_at, given.expires_at, CASE WHEN given.started_at IS NULL THEN CAST($4 AS SMALLINT) ELSE CAST($10 AS SMALLINT) END,
            given.class, given.collapse_key, given.retained_topic, given.retained_place, given.started_at,
            CASE WHEN given.started_at IS NULL THEN NULL ELSE CAST($11 AS BIGINT) END
        FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $5::text[], $7::text[], $8::bigint[], $9::bigint[])
            given (id, expires_at, class, collapse_key, retained_topic, retained_place, started_at)
        JOIN messages m ON m.id = given.id WHERE m.id = ANY($6)";
    let key =
        |message: &&Message| message.spec.collapse_key.as_ref().map(CollapseKey::as_str).map(str::to_owned);
    let values = params![
        id(),
        ints(&|message| Some(message.expires_at().as_millis())),
        ints(&|message| Some(message.spec.target.class().code().into())),
        CampaignState::Scheduled.code(),
        Value::Texts(messages.iter().map(key).collect()),
        inserted.iter().map(|id| int(id.raw())).collect::<Vec<_>>(),
        Value::Texts(
            messages.iter().map(|message| retained::of(message).map(|(topic, _)| topic.to_owned())).collect()
        ),
        ints(&|message: &Message| retained::of(message).map(|(_, place)| place)),
        started_at,
        CampaignState::Running.code(),
        as_of.map(|id| int(id.raw())),
    ];
    run(connection, sql, values)?;
    Ok(inserted.into_iter().collect())
}
