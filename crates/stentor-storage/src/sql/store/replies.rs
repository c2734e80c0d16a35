//! Stored replies, so that a repeated request gets the same reply.

use stentor_core::id::AppId;
use stentor_core::name::IdempotencyKey;
use stentor_core::ports::store::{Idempotent, IdempotentReply, StoredReply};
use stentor_core::time::Timestamp;

use super::app_providers;
use crate::sql::{Connection, Done, Row, hash, int, one, params};

/// Looks up an idempotency key.
pub(crate) fn replay(
    connection: &Connection,
    app: AppId,
    key: &IdempotencyKey,
    request_hash: &[u8; 32],
) -> Done<Option<Idempotent<()>>> {
    let sql = "SELECT request_hash, body FROM replies WHERE app = ?1 AND key = ?2";
    let read = |row: &Row<'_>| {
        let reply = StoredReply { record: row.get(1)? };
        // The lookup is by key alone, to distinguish a key used for another request from a new key.
        Ok(if hash(row, 0)? == *request_hash { Idempotent::Replayed(reply) } else { Idempotent::KeyReused })
    };
    one(connection, sql, params![int(app.raw()), key.as_str()], read)
}

/// Returns the result of a lookup by idempotency key as the result of another kind of request.
pub(crate) fn as_replayed<T>(known: Idempotent<()>) -> Idempotent<T> {
    match known {
        Idempotent::Replayed(reply) => Idempotent::Replayed(reply),
        Idempotent::Done(()) | Idempotent::KeyReused => Idempotent::KeyReused,
    }
}

/// Stores a reply of an app by itself, unless one is stored under its key; all checks come first.
pub(crate) fn keep_alone(
    connection: &Connection,
    app: AppId,
    given: &IdempotentReply,
    now: Timestamp,
) -> Done<Idempotent<()>> {
    app_providers::check_app(connection, app)?;
    match replay(connection, app, &given.key, &given.request_hash)? {
        Some(known) => {
            connection.await_standby();
            Ok(known)
        }
        None => connection.keep_reply(app, given, now).map(Idempotent::Done),
    }
}
