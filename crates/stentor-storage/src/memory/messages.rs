use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::campaign::{Campaign, CampaignAction, CampaignState, Ledger, ProviderLedger};
use stentor_core::chunk::Ticket;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId, MessageId};
use stentor_core::ledger::{self, LedgerRows};
use stentor_core::message::Message;
use stentor_core::name::{IdempotencyKey, TopicName};
use stentor_core::ports::store::{
    AttemptRecord, AudienceCount, ChunkRecords, Idempotent, IdempotentReply, MessageStore, NewMessage, Page,
    StoreError,
};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::state::{AppRow, CampaignRow, ProviderRow, ReplyRow, StoredChunk, Tables};

#[async_trait]
impl MessageStore for MemoryStore {
    async fn accept(&self, messages: Vec<NewMessage>) -> Vec<Result<Idempotent<()>, StoreError>> {
        let mut state = self.lock();
        messages.into_iter().map(|message| state.accept(message)).collect()
    }

    async fn replay(
        &self,
        app: AppId,
        key: &IdempotencyKey,
        request_hash: &[u8; 32],
    ) -> Result<Option<Idempotent<()>>, StoreError> {
        Ok(self.lock().app(app)?.replay(key, request_hash))
    }

    async fn keep_reply(
        &self,
        app: AppId,
        reply: &IdempotentReply,
        now: Timestamp,
    ) -> Result<Idempotent<()>, StoreError> {
        let mut state = self.lock();
        if let Some(known) = state.app(app)?.replay(&reply.key, &reply.request_hash) {
            return Ok(known);
        }
        state.app_mut(app)?.keep_reply(reply.clone(), now);
        Ok(Idempotent::Done(()))
    }

    async fn message(&self, app: AppId, id: MessageId) -> Result<Message, StoreError> {
        Ok(Message::clone(&self.lock().campaign(app, id.into())?.message))
    }

    async fn messages(&self, app: AppId, ids: Vec<MessageId>) -> Result<Vec<Message>, StoreError> {
        let state = self.lock();
        let found = ids.into_iter().filter_map(|id| state.campaign(app, id.into()).ok());
        Ok(found.map(|row| Message::clone(&row.message)).collect())
    }

    async fn retained(
        &self,
        app: AppId,
        topic: &TopicName,
        now: Timestamp,
    ) -> Result<Option<MessageId>, StoreError> {
        Ok(self.lock().retained(app, topic, now))
    }

    async fn campaigns(&self, app: AppId, page: Page) -> Result<Vec<Campaign>, StoreError> {
        let state = self.lock();
        Ok(state.newest_first(app, page.after).take(page.limit).map(|row| row.campaign.clone()).collect())
    }

    async fn broken_campaigns(&self, _: AppId, _: Page) -> Result<Vec<CampaignId>, StoreError> {
        Ok(Vec::new())
    }

    async fn ledger(&self, app: AppId, id: CampaignId) -> Result<Ledger, StoreError> {
        Ok(self.lock().campaign(app, id)?.ledger())
    }

    async fn sums(
        &self,
        app: AppId,
        ids: Vec<CampaignId>,
    ) -> Result<Vec<(CampaignId, Vec<ProviderLedger>)>, StoreError> {
        let state = self.lock();
        let found = ids.into_iter().filter_map(|id| Some((id, state.campaign(app, id).ok()?.sums())));
        Ok(found.filter(|(_, sums)| !sums.is_empty()).collect())
    }

    async fn chunk_records(
        &self,
        app: AppId,
        message: MessageId,
        from: ChunkId,
        max: usize,
    ) -> Result<Vec<ChunkRecords>, StoreError> {
        let state = self.lock();
        Ok(state.chunk_records(state.campaign(app, message.into())?, from, max))
    }

    async fn delivery(
        &self,
        app: AppId,
        message: MessageId,
        device: DeviceId,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        let state = self.lock();
        Ok(state.attempts(state.campaign(app, message.into())?, device))
    }

    async fn history(
        &self,
        app: AppId,
        device: DeviceId,
        page: Page,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        let state = self.lock();
        let attempts = state.newest_first(app, page.after).map(|row| state.attempts(row, device));
        Ok(attempts.filter(|attempts| !attempts.is_empty()).take(page.limit).flatten().collect())
    }

    async fn count_audience(&self, app: AppId, target: &Target) -> Result<Vec<AudienceCount>, StoreError> {
        self.lock().app(app)?.count_audience(target)
    }
}

impl Tables {
    fn accept(&mut self, new: NewMessage) -> Result<Idempotent<()>, StoreError> {
        let NewMessage { message, idempotency } = new;
        let (app, now) = (message.app, message.created_at);
        let row = self.app(app)?;
        if let Some(known) =
            idempotency.as_ref().and_then(|given| row.replay(&given.key, &given.request_hash))
        {
            return Ok(match known {
                Idempotent::Replayed(reply) => Idempotent::Replayed(reply),
                Idempotent::Done(()) | Idempotent::KeyReused => Idempotent::KeyReused,
            });
        }
        // After the look for a repeat, which gets its first reply whatever became of the target.
        row.check_target(&message.spec.target)?;
        self.add_campaign(message)?;
        if let Some(given) = idempotency {
            self.app_mut(app)?.keep_reply(given, now);
        }
        Ok(Idempotent::Done(()))
    }

    /// Keeps a message that waits for its due time.
    pub(super) fn add_campaign(&mut self, message: Message) -> Result<(), StoreError> {
        let id = CampaignId::from(message.id);
        if self.campaigns.contains_key(&id) {
            return Err(StoreError::Conflict("the message id is in use".to_owned()));
        }
        let campaign = Campaign {
            id,
            app: message.app,
            state: CampaignState::Scheduled,
            created_at: message.created_at,
            due_at: message.due_at,
            expires_at: message.expires_at(),
            started_at: None,
            ended_at: None,
            stop: None,
        };
        let (message, as_of, providers, chunks) = (Arc::new(message), None, BTreeMap::new(), Vec::new());
        self.campaigns.insert(id, CampaignRow { campaign, message, as_of, providers, chunks });
        Ok(())
    }

    pub(super) fn act(
        &mut self,
        app: AppId,
        id: CampaignId,
        action: CampaignAction,
        now: Timestamp,
    ) -> Result<(Campaign, Vec<Ticket>), StoreError> {
        let campaign = ledger::act(self, (app, id), action, now)?;
        let is_resumed = action == CampaignAction::Resume && campaign.state == CampaignState::Running;
        let queued = if is_resumed { self.queued(id, None, usize::MAX)? } else { Vec::new() };
        let tickets = queued.iter().filter_map(|id| self.chunks.get(id)).map(StoredChunk::ticket).collect();
        Ok((campaign, tickets))
    }

    pub(super) fn retained(&self, app: AppId, topic: &TopicName, now: Timestamp) -> Option<MessageId> {
        let is_live = |campaign: &Campaign| {
            let is_held = matches!(campaign.state, CampaignState::Canceled | CampaignState::Paused);
            campaign.app == app && campaign.due_at <= now && now < campaign.expires_at && !is_held
        };
        let live = self.campaigns.values().filter(|row| is_live(&row.campaign)).map(|row| &row.message);
        let kept = live.filter(|message| message.spec.retained_topic() == Some(topic));
        kept.max_by_key(|message| (message.place(), message.id)).map(|message| message.id)
    }

    fn newest_first(&self, app: AppId, below: u64) -> impl Iterator<Item = &CampaignRow> {
        let end = if below == 0 { u64::MAX } else { below };
        let rows = self.campaigns.values().rev();
        rows.filter(move |row| row.campaign.app == app && row.campaign.id.raw() < end)
    }
}

impl CampaignRow {
    fn sums(&self) -> Vec<ProviderLedger> {
        self.providers.values().map(|at| at.books.ledger().clone()).collect()
    }

    fn ledger(&self) -> Ledger {
        let shown = self.providers.values().filter(|at| at.books.ledger().audience > 0 || at.producing);
        let providers = shown.map(ProviderRow::ledger).collect();
        Ledger { campaign: self.campaign.clone(), providers }
    }
}

impl AppRow {
    pub(super) fn replay(&self, key: &IdempotencyKey, request_hash: &[u8; 32]) -> Option<Idempotent<()>> {
        let known = self.replies.get(key)?;
        let same = known.request_hash == *request_hash;
        Some(if same { Idempotent::Replayed(known.reply.clone()) } else { Idempotent::KeyReused })
    }

    pub(super) fn keep_reply(&mut self, given: IdempotentReply, now: Timestamp) {
        let IdempotentReply { key, request_hash, reply } = given;
        self.replies.insert(key, ReplyRow { request_hash, reply, created_at: now });
    }
}
