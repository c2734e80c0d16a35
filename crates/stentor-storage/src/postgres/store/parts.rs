//! The parts of the store that this engine has of its own.

use crate::postgres::engine::Connection;
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, DeviceId, UpstreamId};
use stentor_core::message::Message;
use stentor_core::ports::store::{Change, IdempotentReply, NodeEvent};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::leftovers::{self, Leftover};
use super::{accept, audience, node_events, nodes, quotas, sequences, tokens, upstream_claims};
use crate::postgres::transactor::STANDBY_NOTE;
use crate::sql::{Done, EngineParts, Portion, RemovedKind, exists, int, params, run};

impl EngineParts for Connection {
    fn holder(&self, fleet: AppProvider, token: &PushToken) -> Done<Option<i64>> {
        tokens::holder(self, fleet, token)
    }

    fn holders(&self, fleet: AppProvider, tokens: &[PushToken]) -> Done<Vec<Option<i64>>> {
        tokens::holders(self, fleet, tokens)
    }

    fn count_stretch(
        &self,
        target: &Target,
        fleet: AppProvider,
        after: DeviceId,
    ) -> Done<(u64, Option<DeviceId>)> {
        audience::count_some(self, target, fleet, after)
    }

    fn report_change(&self, change: &Change) {
        if let Some(own) = self.shared.own.get() {
            node_events::publish(self, own, node_events::of_change(change));
        }
    }

    fn wake_others(&self) {
        if let Some(own) = self.shared.own.among_others() {
            node_events::wake(self, own);
        }
    }

    fn next_audit_entry(&self) -> Done<Option<i64>> {
        Ok(Some(int(sequences::next(self, "audit")?)))
    }

    fn probe(&self) -> Done<()> {
        // The connection's own method notes the write for the end of the transaction.
        Self::probe(self);
        Ok(())
    }

    fn damaged_rows(&self) -> u64 {
        self.shared.damage.count()
    }

    fn has_standbys(&self) -> Done<bool> {
        exists(self, "SELECT 1 WHERE current_setting('synchronous_standby_names') <> ''", ())
    }

    fn set_token(&self, fleet: AppProvider, key: i64, _: &PushToken, token: &PushToken) -> Done<()> {
        let hash = tokens::hash(fleet.app, fleet.provider, token);
        let sql = "UPDATE devices SET token = ?2, token_hash = ?3 WHERE key = ?1";
        run(self, sql, params![key, token.expose(), hash]).map(drop)
    }

    fn lock_device(&self, key: i64) -> Done<()> {
        run(self, "SELECT 1 FROM devices WHERE key = ?1 FOR UPDATE", [key]).map(drop)
    }

    fn cut_off(&self, app: AppId, device: DeviceId, provider: ProviderKind) {
        if let Some(own) = self.shared.own.get().filter(|_| provider == ProviderKind::Gateway) {
            node_events::publish(self, own, [NodeEvent::CutOff(app, Some(device))]);
        }
    }

    fn is_free_upstream(&self) -> String {
        let own = self.shared.own.get().map_or("NULL".to_owned(), |own| own.to_string());
        upstream_claims::is_free(&own)
    }

    fn claim_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Done<Vec<UpstreamId>> {
        match self.shared.own.get() {
            Some(own) => upstream_claims::claim(self, app, ids, own),
            None => Ok(ids.to_vec()),
        }
    }

    fn release_upstream(&self, app: AppId, ids: &[UpstreamId]) -> Done<u64> {
        self.shared.own.get().map_or(Ok(0), |own| upstream_claims::release(self, app, ids, own))
    }

    fn prune_events(&self, limit: usize) -> Done<u64> {
        let events = node_events::forget(self, limit)?;
        Ok((events + quotas::forget(self, limit - events)?) as u64)
    }

    fn has_old_events(&self) -> Done<bool> {
        Ok(node_events::are_many(self)? || quotas::are_unused(self)?)
    }

    fn insert_message(&self, message: &Message) -> Done<()> {
        accept::insert(self, message)
    }

    fn keep_reply(&self, app: AppId, reply: &IdempotentReply, now: Timestamp) -> Done<()> {
        accept::keep_reply(self, app, reply, now)
    }

    fn await_standby(&self) {
        self.defer(STANDBY_NOTE);
    }

    fn is_firing(&self) -> Done<bool> {
        nodes::is_firing(self, self.shared.own.get())
    }

    fn note_removal(&self, kind: RemovedKind, no: i64) -> Done<()> {
        Leftover::of(kind, no).note(self)
    }

    fn go_on_removing(&self, portion: &Portion<'_>) -> Done<bool> {
        leftovers::go_on(self, portion)
    }

    fn begin_removal(&self, kind: RemovedKind, no: i64, portion: &Portion<'_>) -> Done<()> {
        Leftover::of(kind, no).begin(self, portion)
    }
}
