//! Changes without an entry in the audit trail, each as a method, for the setup of cases.

use async_trait::async_trait;
use stentor_core::account::IssuedAccount;
use stentor_core::app::{ApiKey, App, Credential};
use stentor_core::campaign::{Campaign, CampaignAction};
use stentor_core::chunk::Ticket;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, KeyId, ScheduleId};
use stentor_core::ports::store::{
    AuditStore, Change, Changed, Idempotent, IdempotentReply, Precondition, StoreError,
};
use stentor_core::schedule::{Schedule, ScheduleState};
use stentor_core::time::Timestamp;
use stentor_core::upstream::UpstreamWebhook;

type Done<T> = Result<T, StoreError>;

/// Each change of the port, without an entry.
#[async_trait]
pub trait PlainChanges: AuditStore {
    async fn create_app(&self, app: &App) -> Done<()> {
        self.change(Change::CreateApp(app.clone()), None).await.map(drop)
    }

    async fn delete_app(&self, app: AppId) -> Done<()> {
        self.change(Change::DeleteApp(app, Precondition::none()), None).await.map(drop)
    }

    async fn create_key(&self, key: &ApiKey) -> Done<()> {
        self.change(Change::CreateKey(key.clone()), None).await.map(drop)
    }

    async fn delete_key(&self, app: AppId, key: KeyId) -> Done<()> {
        self.change(Change::DeleteKey(app, key), None).await.map(drop)
    }

    async fn create_account(&self, account: &IssuedAccount) -> Done<()> {
        self.change(Change::CreateAccount(account.clone()), None).await.map(drop)
    }

    async fn delete_account(&self, app: AppId, id: KeyId) -> Done<()> {
        self.change(Change::DeleteAccount(app, id), None).await.map(drop)
    }

    async fn put_credential(&self, credential: &Credential) -> Done<()> {
        self.change(Change::PutCredential(credential.clone()), None).await.map(drop)
    }

    async fn delete_credential(&self, app: AppId, provider: ProviderKind) -> Done<()> {
        self.change(Change::DeleteCredential(app, provider), None).await.map(drop)
    }

    async fn put_webhook(&self, webhook: &UpstreamWebhook) -> Done<()> {
        self.change(Change::PutUpstreamWebhook(webhook.clone()), None).await.map(drop)
    }

    async fn delete_webhook(&self, app: AppId) -> Done<()> {
        self.change(Change::DeleteUpstreamWebhook(app), None).await.map(drop)
    }

    async fn create_schedule(
        &self,
        schedule: &Schedule,
        idempotency: Option<IdempotentReply>,
    ) -> Done<Idempotent<()>> {
        let change = Change::CreateSchedule(Box::new(schedule.clone()), idempotency);
        match self.change(change, None).await? {
            Changed::Stored(stored) => Ok(stored),
            other => Err(unlike(&other)),
        }
    }

    async fn delete_broken_schedule(&self, app: AppId, id: ScheduleId) -> Done<()> {
        self.change(Change::DeleteBrokenSchedule(app, id), None).await.map(drop)
    }

    async fn set_schedule(
        &self,
        app: AppId,
        id: ScheduleId,
        state: ScheduleState,
        next_due: Option<Timestamp>,
    ) -> Done<Schedule> {
        match self.change(Change::SetSchedule(app, id, state, next_due), None).await? {
            Changed::Schedule(schedule) => Ok(*schedule),
            other => Err(unlike(&other)),
        }
    }

    async fn act(
        &self,
        app: AppId,
        id: CampaignId,
        action: CampaignAction,
        now: Timestamp,
    ) -> Done<(Campaign, Vec<Ticket>)> {
        match self.change(Change::Act(app, id, action, now), None).await? {
            Changed::Campaign(campaign, tickets) => Ok((*campaign, tickets)),
            other => Err(unlike(&other)),
        }
    }
}

impl<T: AuditStore + ?Sized> PlainChanges for T {}

fn unlike(changed: &Changed) -> StoreError {
    StoreError::Damaged(format!("a change came to {changed:?}"))
}
