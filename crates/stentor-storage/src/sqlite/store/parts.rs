//! The parts of the store that this engine has of its own.

use rusqlite::Connection;
use stentor_core::device::PushToken;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::message::Message;
use stentor_core::ports::store::IdempotentReply;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::leftovers::{self, Leftover, LeftoverKind};
use super::{accept, audience, sequences, tokens};
use crate::sql::{Done, EngineParts, Portion, RemovedKind, damaged, params, run};
use crate::sqlite::damage;

impl EngineParts for Connection {
    fn holder(&self, fleet: AppProvider, token: &PushToken) -> Done<Option<i64>> {
        tokens::holder(self, fleet, token)
    }

    fn forget_token(&self, fleet: AppProvider, token: &PushToken, key: i64) -> Done<()> {
        tokens::forget(self, [(tokens::hash(fleet.app, fleet.provider, token), key)])
    }

    fn note_fleets(&self, app: i64) -> Done<()> {
        leftovers::leave_fleets(self, app)
    }

    fn count_stretch(
        &self,
        target: &Target,
        fleet: AppProvider,
        after: DeviceId,
    ) -> Done<(u64, Option<DeviceId>)> {
        audience::count_some(self, target, fleet, after)
    }

    fn set_token(&self, fleet: AppProvider, key: i64, former: &PushToken, token: &PushToken) -> Done<()> {
        let hash = tokens::hash(fleet.app, fleet.provider, token);
        // Looked up by the former token, the device would be found where another one registers it.
        if former != token {
            tokens::forget(self, [(tokens::hash(fleet.app, fleet.provider, former), key)])?;
            tokens::note(self, [(hash, key)])?;
        }
        let sql = "UPDATE devices SET token = ?2 WHERE key = ?1";
        run(self, sql, params![key, token.expose()]).map(drop)
    }

    fn probe(&self) -> Done<()> {
        sequences::probe(self)
    }

    fn damaged_rows(&self) -> u64 {
        damage::count(self)
    }

    fn insert_message(&self, message: &Message) -> Done<()> {
        let spec = message.spec.encode().map_err(|error| damaged(&error.to_string()))?;
        accept::insert(self, message, &spec, None)
    }

    fn keep_reply(&self, app: AppId, reply: &IdempotentReply, now: Timestamp) -> Done<()> {
        accept::keep_reply(self, app, reply, now)
    }

    fn note_removal(&self, kind: RemovedKind, no: i64) -> Done<()> {
        Leftover::of(LeftoverKind::Removed(kind), no).note(self)
    }

    fn go_on_removing(&self, portion: &Portion<'_>) -> Done<bool> {
        leftovers::go_on(self, portion)
    }

    fn begin_removal(&self, kind: RemovedKind, no: i64, portion: &Portion<'_>) -> Done<()> {
        Leftover::of(LeftoverKind::Removed(kind), no).begin(self, portion)
    }

    fn begin_following(&self, group: i64, person: i64, portion: &Portion<'_>) -> Done<()> {
        Leftover::member(group, person).begin(self, portion)
    }

    fn note_following(&self, group: i64, person: i64) -> Done<()> {
        Leftover::member(group, person).note(self)
    }

    fn is_following(&self, group: i64) -> Done<bool> {
        leftovers::is_following(self, group)
    }

    fn follow(&self, group: i64) -> Done<bool> {
        leftovers::follow_group(self, group)
    }
}
