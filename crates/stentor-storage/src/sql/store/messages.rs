//! Messages, campaigns and their actions.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::campaign::{Campaign, CampaignAction, CampaignState, Ledger, ProviderLedger};
use stentor_core::chunk::Ticket;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId, MessageId};
use stentor_core::ledger;
use stentor_core::message::Message;
use stentor_core::name::{CollapseKey, IdempotencyKey, TopicName};
use stentor_core::ports::store::{
    Accepted, AttemptFilter, AttemptRecord, AudienceCount, ChunkRecords, Idempotent, IdempotentReply, Listed,
    MessageStore, NewMessage, Page, StoreError,
};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::{
    app_providers, audience_counts, books, campaigns, chunks, collapse, history, message_rows, replies,
    retained,
};
use crate::sql::{EngineParts as _, LedgerEngine, SqlStore};

/// Tickets that are read at once.
const TICKETS_AT_ONCE_MAX_COUNT: usize = 1_000;

#[async_trait]
impl<E: LedgerEngine> MessageStore for SqlStore<E> {
    async fn accept(&self, messages: Vec<NewMessage>) -> Vec<Result<Idempotent<Accepted>, StoreError>> {
        self.inner.accept(messages).await
    }

    async fn replay(
        &self,
        app: AppId,
        key: &IdempotencyKey,
        request_hash: &[u8; 32],
    ) -> Result<Option<Idempotent<()>>, StoreError> {
        let (key, hash) = (key.clone(), *request_hash);
        let replay = self.read(move |connection| {
            let found = replies::replay(connection, app, &key, &hash)?;
            Ok((found.is_some() && connection.has_standbys()?, found))
        });
        let (has_standbys, found) = replay.await?;
        if has_standbys {
            // The first answer may have been a refusal because no standby had it; a commit that comes later waits for both.
            let note = self.write_rows(|connection| {
                connection.await_standby();
                Ok(())
            });
            note.await?;
        }
        Ok(found)
    }

    async fn keep_reply(
        &self,
        app: AppId,
        reply: &IdempotentReply,
        now: Timestamp,
    ) -> Result<Idempotent<()>, StoreError> {
        let reply = reply.clone();
        self.write_rows(move |connection| replies::keep_alone(connection, app, &reply, now)).await
    }

    async fn newest_with_key(&self, app: AppId, key: &CollapseKey) -> Result<Option<MessageId>, StoreError> {
        let key = key.clone();
        self.read(move |connection| collapse::newest(connection, app, &key)).await
    }

    async fn message(&self, app: AppId, id: MessageId) -> Result<Message, StoreError> {
        let message = self.read(move |connection| message_rows::load(connection, id)).await?;
        // A message of another app is treated as missing.
        message.filter(|message| message.app == app).ok_or(StoreError::NotFound("message"))
    }

    async fn messages(&self, app: AppId, ids: Vec<MessageId>) -> Result<Vec<Message>, StoreError> {
        let mut messages = self.read(move |connection| message_rows::load_all(connection, &ids)).await?;
        messages.retain(|message| message.app == app);
        Ok(messages)
    }

    async fn retained(
        &self,
        app: AppId,
        topic: &TopicName,
        now: Timestamp,
    ) -> Result<Option<MessageId>, StoreError> {
        let topic = topic.clone();
        self.read(move |connection| retained::newest(connection, app, &topic, now)).await
    }

    async fn campaigns(&self, app: AppId, page: Page) -> Result<Listed<Campaign, CampaignId>, StoreError> {
        self.read(move |connection| campaigns::list(connection, app, page)).await
    }

    async fn ledger(&self, app: AppId, id: CampaignId) -> Result<Ledger, StoreError> {
        self.read(move |connection| {
            let campaign = campaigns::require(connection, app, id)?;
            Ok(Ledger { campaign, providers: books::of_campaign(connection, id)? })
        })
        .await
    }

    async fn sums(
        &self,
        app: AppId,
        ids: Vec<CampaignId>,
    ) -> Result<Vec<(CampaignId, Vec<ProviderLedger>)>, StoreError> {
        self.read(move |connection| {
            let own = campaigns::of_app(connection, app, &ids)?;
            Ok(books::sums_of_all(connection, &own)?.into_iter().collect())
        })
        .await
    }

    async fn chunk_records(
        &self,
        app: AppId,
        message: MessageId,
        from: ChunkId,
        max: usize,
    ) -> Result<Vec<ChunkRecords>, StoreError> {
        self.read(move |connection| {
            campaigns::require(connection, app, message.into())?;
            history::records(connection, message, from, max)
        })
        .await
    }

    async fn attempts(
        &self,
        app: AppId,
        device: DeviceId,
        filter: AttemptFilter,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        match filter {
            AttemptFilter::Message(message) => {
                self.read(move |connection| {
                    // A campaign of another app is refused before anything of it is read.
                    campaigns::require(connection, app, message.into())?;
                    let fleets = app_providers::of_app(connection, app)?;
                    history::of_message(connection, &fleets, message, device)
                })
                .await
            }
            AttemptFilter::Page(page) => {
                self.read_long(move |connection| history::of_device(connection, app, device, page)).await
            }
        }
    }

    async fn count_audience(&self, app: AppId, target: &Target) -> Result<Vec<AudienceCount>, StoreError> {
        let target = Arc::new(target.clone());
        let given = Arc::clone(&target);
        if !audience_counts::is_walked(&target) {
            return self.read(move |connection| audience_counts::count(connection, app, &given)).await;
        }
        let mut counts = Vec::new();
        for fleet in
            self.read(move |connection| audience_counts::begin_count(connection, app, &given)).await?
        {
            audience_counts::push(&mut counts, fleet.provider, self.count_in(&target, fleet).await?);
        }
        Ok(counts)
    }
}

#[expect(private_bounds, reason = "other crates name stores, and never the parts of an engine")]
impl<E: LedgerEngine> SqlStore<E> {
    /// Completes an action on a campaign after its transaction. Returns the campaign as it is then, and the tickets of the chunks that may
    /// be sent again.
    pub(crate) async fn after_act(
        &self,
        campaign: Campaign,
        action: CampaignAction,
        now: Timestamp,
    ) -> Result<(Campaign, Vec<Ticket>), StoreError> {
        match action {
            CampaignAction::Cancel => Ok((self.wind_up(campaign, now).await?, Vec::new())),
            CampaignAction::Resume if campaign.state == CampaignState::Running => {
                let tickets = self.tickets(campaign.id).await?;
                Ok((campaign, tickets))
            }
            CampaignAction::Resume | CampaignAction::Pause => Ok((campaign, Vec::new())),
        }
    }

    /// Ends the queued deliveries of a canceled campaign, one portion per transaction; returns the campaign as it is then. The rest is left
    /// for later if a transaction fails.
    async fn wind_up(&self, campaign: Campaign, now: Timestamp) -> Result<Campaign, StoreError> {
        let (app, id) = (campaign.app, campaign.id);
        if campaign.ended_at.is_some() {
            return Ok(campaign);
        }
        // Others write between the portions; the rest after a failure is done by `continue_work`.
        while let Ok(true) =
            self.write(move |connection| ledger::wind_up(&mut E::rows(connection), id, now)).await
        {}
        self.read(move |connection| campaigns::require(connection, app, id)).await
    }

    /// Lists the tickets of a campaign's queued chunks, page by page.
    async fn tickets(&self, id: CampaignId) -> Result<Vec<Ticket>, StoreError> {
        let mut tickets: Vec<Ticket> = Vec::new();
        loop {
            let after = tickets.last().map_or(ChunkId::from_raw(0), |last| last.chunk);
            let page = self.read_long(move |connection| {
                chunks::tickets(connection, id, after, TICKETS_AT_ONCE_MAX_COUNT)
            });
            let page = page.await?;
            let is_last = page.len() < TICKETS_AT_ONCE_MAX_COUNT;
            tickets.extend(page);
            if is_last {
                return Ok(tickets);
            }
        }
    }

    /// Counts an audience in one fleet, one stretch at a time, so that other readers run in between.
    async fn count_in(&self, target: &Arc<Target>, fleet: AppProvider) -> Result<u64, StoreError> {
        let (mut count, mut next) = (0, Some(DeviceId::from_raw(0)));
        while let Some(after) = next {
            let target = Arc::clone(target);
            let found =
                self.read_long(move |connection| connection.count_stretch(&target, fleet, after)).await?;
            count += found.0;
            next = found.1;
        }
        Ok(count)
    }
}
