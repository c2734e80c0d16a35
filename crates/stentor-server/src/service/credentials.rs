//! Credentials of apps at push services: checked when put, never shown again.

use std::collections::BTreeMap;

use parking_lot::{RwLock, RwLockWriteGuard};
use serde_json::Value;
use stentor_core::app::{Credential, Scope, Scopes};
use stentor_core::audit::AuditAction;
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, KeyId};
use stentor_core::outcome::Reason;
use stentor_core::ports::provider::CredentialError;
use stentor_core::ports::store::{Change, NodeRecord, StoreError};
use stentor_core::time::Timestamp;
use stentor_providers::RefusedHost;

use super::audit::{AuditSubject, Author};
use super::{Caller, ErrorCode, Identity, Origin, Problem, Service, ServiceResult};
use crate::contract::Serve;
use crate::contract::credentials::{
    CredentialCheck, CredentialList, CredentialRequest, CredentialSummary, CredentialView, QuotaStatus,
};
use crate::contract::table::{CheckCredential, DeleteCredential, ListCredentials, PutCredential};
use crate::decode::decode_with;
use crate::pipeline::stats::QuotaStats;

/// Why nothing is sent with a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkReason {
    /// In a word.
    pub reason: Reason,
    /// In a sentence, for the operator.
    pub detail: String,
    /// Not before this instant; `None` while no end is known.
    pub until: Option<Timestamp>,
}

/// Why a credential that was tried does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFailure {
    /// The host that failed, as `host:port`, if any was asked.
    pub host: Option<String>,
    /// In a sentence, for the operator.
    pub cause: String,
}

/// Which app has credentials for which providers, in memory: every message asks.
#[derive(Debug, Default)]
pub(super) struct Kinds(RwLock<KnownKinds>);

#[derive(Debug, Default)]
struct KnownKinds {
    by_app: BTreeMap<AppId, Vec<ProviderKind>>,
    /// Counts what was put and removed here.
    changes: u64,
}

impl Kinds {
    pub(super) fn of(credentials: &[Credential]) -> Self {
        let kinds = Self::default();
        kinds.replace(credentials, 0);
        kinds
    }

    pub(super) fn of_app(&self, app: AppId) -> Vec<ProviderKind> {
        let known = self.0.read();
        known.by_app.get(&app).cloned().unwrap_or_default()
    }

    pub(super) fn forget_app(&self, app: AppId) -> Vec<ProviderKind> {
        let mut known = self.write();
        // A list that is being read meanwhile is older than this, and must not be taken over.
        known.changes += 1;
        known.by_app.remove(&app).unwrap_or_default()
    }

    fn changes(&self) -> u64 {
        self.0.read().changes
    }

    /// Knows these and no others, unless something was changed here since so many changes.
    fn replace(&self, credentials: &[Credential], changes: u64) -> bool {
        let mut known = self.write();
        if known.changes != changes {
            return false;
        }
        known.by_app.clear();
        credentials.iter().for_each(|one| known.add(one.app, one.provider));
        true
    }

    fn add(&self, app: AppId, provider: ProviderKind) {
        let mut known = self.write();
        known.changes += 1;
        known.add(app, provider);
    }

    fn remove(&self, app: AppId, provider: ProviderKind) {
        let mut known = self.write();
        known.changes += 1;
        if let Some(kinds) = known.by_app.get_mut(&app) {
            kinds.retain(|kind| *kind != provider);
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, KnownKinds> {
        self.0.write()
    }
}

impl KnownKinds {
    fn add(&mut self, app: AppId, provider: ProviderKind) {
        let kinds = self.by_app.entry(app).or_default();
        if !kinds.contains(&provider) {
            kinds.push(provider);
            kinds.sort_unstable();
        }
    }
}

impl Serve<PutCredential> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        (app, provider): (AppId, ProviderKind),
        CredentialRequest { json }: CredentialRequest,
    ) -> ServiceResult<()> {
        let fields = decode_with(&stentor_providers::descriptor(provider).credential, &json)?;
        let secret = Value::Object(fields).to_string();
        let credential = Credential { app, provider, secret, updated_at: self.now() };
        // A host that is an address in itself can be judged without a look-up; names are judged at each connection.
        if let Some(host) = crate::providers::refused_host(&credential, &self.outbound) {
            return Err(may_not_connect(host));
        }
        let author = Author::of(identity, from);
        let subject = AuditSubject::new(AuditAction::CredentialPut, app, provider);
        self.administrated_by(&author, &subject, identity, app).await?;
        // The adapter reads its key, so that one that is none is refused now and not at the first message.
        crate::providers::check_credential(&credential, self.clock.clone()).map_err(unusable)?;
        let _turn = self.check_vapid_key(&credential).await?;
        let subject = subject.with_detail(&in_words(&credential));
        self.change(author, subject, Change::PutCredential(credential)).await?;
        // After the commit: whoever reads the credential because of these finds the new one.
        self.credentials.add(app, provider);
        self.pipeline.changed(app, provider);
        Ok(())
    }
}

impl Serve<ListCredentials> for Service {
    async fn serve(&self, identity: Identity, app: AppId, (): ()) -> ServiceResult<CredentialList> {
        let app = self.administrated(identity, app).await?;
        let (mut credentials, nodes) = (Vec::new(), self.store.nodes().await?);
        for provider in self.credentials.of_app(app) {
            match self.store.credential(app, provider).await {
                Ok(credential) => credentials.push(self.view(&credential, &nodes).await?),
                // Somebody has removed it since, perhaps at another server.
                Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(CredentialList { credentials })
    }
}

impl Serve<CheckCredential> for Service {
    async fn serve(
        &self,
        identity: Identity,
        (app, provider): (AppId, ProviderKind),
        (): (),
    ) -> ServiceResult<CredentialCheck> {
        let app = self.administrated(identity, app).await?;
        // One that is not there is told apart from one that does not work.
        self.store.credential(app, provider).await?;
        let tried = self.pipeline.check(app, provider).await;
        let (host, cause) = tried.err().map_or((None, None), |failure| (failure.host, Some(failure.cause)));
        Ok(CredentialCheck { provider, works: cause.is_none(), host, cause })
    }
}

impl Serve<DeleteCredential> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        (app, provider): (AppId, ProviderKind),
        (): (),
    ) -> ServiceResult<()> {
        let author = Author::of(identity, from);
        let subject = AuditSubject::new(AuditAction::CredentialDelete, app, provider);
        let app = self.administrated_by(&author, &subject, identity, app).await?;
        self.change(author, subject, Change::DeleteCredential(app, provider)).await?;
        // After the commit, as above: asked earlier, a lane would be given the credential once more.
        self.credentials.remove(app, provider);
        self.pipeline.changed(app, provider);
        Ok(())
    }
}

impl Service {
    /// Lets a device register itself with a key that may do that, unless too many of the app do so at once.
    pub(crate) async fn admit_device(&self, caller: Caller, origin: Origin) -> ServiceResult<()> {
        caller.require_any(&[Scope::Join, Scope::Register])?;
        // Counted before the first look at the store, which is what too many at once would wear out.
        self.count_join(caller.app())?;
        self.open_gateway(caller, origin).await
    }

    /// Returns whether devices may still register with a key of an app that was good before.
    pub(crate) async fn may_join_still(&self, app: AppId, key: KeyId) -> ServiceResult<bool> {
        let scopes = match self.store.keys(app).await?.into_iter().find(|known| known.id == key) {
            Some(known) => Some(known.scopes),
            None => {
                let account = self.keyring.account_identity(self.store.as_ref(), key).await?;
                account.and_then(|account| account.on(app).ok()).map(|caller| caller.scopes())
            }
        };
        let may = |scopes: Scopes| scopes.allows(Scope::Join) || scopes.allows(Scope::Register);
        Ok(scopes.is_some_and(may))
    }

    /// Counts a device that registers itself; refuses one that comes too soon after others of the app.
    pub(crate) fn count_join(&self, app: AppId) -> ServiceResult<()> {
        let too_many = "too many devices of this app register at once";
        self.joins.take(app).map_err(|_| Problem::new(ErrorCode::RateLimited, too_many))
    }

    /// Lets an app send through the gateway where one of these devices is reached by it: nothing of the app is needed for that.
    pub(super) async fn open_gateway_for(
        &self,
        caller: Caller,
        registrations: &[Registration],
    ) -> ServiceResult<()> {
        match registrations.iter().any(|one| one.provider == ProviderKind::Gateway) {
            true => self.open_gateway(caller, Origin::default()).await,
            false => Ok(()),
        }
    }

    /// Lets an app send through the gateway, as soon as its first device is registered.
    async fn open_gateway(&self, caller: Caller, origin: Origin) -> ServiceResult<()> {
        let (app, provider) = (caller.app(), ProviderKind::Gateway);
        // Only the first device of an app costs a change; each later one finds it in memory.
        if self.credentials.of_app(app).contains(&provider) {
            return Ok(());
        }
        let credential = Credential { app, provider, secret: "{}".to_owned(), updated_at: self.now() };
        let subject =
            AuditSubject::new(AuditAction::CredentialPut, app, provider).with_detail(&in_words(&credential));
        self.change(Author::for_caller(caller, origin), subject, Change::PutCredential(credential)).await?;
        // Also where another request did it just now: putting the same again changes nothing.
        self.credentials.add(app, provider);
        self.pipeline.changed(app, provider);
        Ok(())
    }

    /// Shows a credential, why it is parked, here or at another of the nodes that send with it, and how its quota stands.
    async fn view(&self, credential: &Credential, nodes: &[NodeRecord]) -> ServiceResult<CredentialView> {
        let (app, provider) = (credential.app, credential.provider);
        let resting = self.pipeline.parked(app, provider).or_else(|| self.is_refused(credential));
        let resting = resting.or_else(|| parked_elsewhere(nodes, app, provider));
        Ok(CredentialView {
            provider,
            updated_at: credential.updated_at.into(),
            summary: summary(credential),
            state: if resting.is_some() { "parked" } else { "ok" },
            reason: resting.as_ref().map(|resting| resting.reason),
            detail: resting.map(|resting| resting.detail),
            quota: self.quota_of(credential).await?.map(|quota| QuotaStatus {
                per_minute_now: quota.per_minute_now,
                tokens: quota.tokens,
                throttled_seconds: quota.waited.as_secs_f64(),
            }),
        })
    }

    /// Returns how a credential's quota stands: where all nodes share it, by what the store has of it.
    async fn quota_of(&self, credential: &Credential) -> ServiceResult<Option<QuotaStats>> {
        let (app, provider) = (credential.app, credential.provider);
        let level = self.store.quota_level(app, provider).await?;
        let shared = crate::providers::quota(credential).zip(level);
        Ok(match shared {
            Some(shared) => self.pipeline.shared_quota((app, provider), shared),
            None => self.pipeline.quota(app, provider),
        })
    }

    /// Returns why a credential rests that was kept under other settings, before anything is sent with it.
    fn is_refused(&self, credential: &Credential) -> Option<ParkReason> {
        let host = crate::providers::refused_host(credential, &self.outbound)?;
        let detail = format!("{}: {}; {}", host.field, host.refused, allowing(&host));
        Some(ParkReason { reason: Reason::AddressRefused, detail, until: None })
    }

    /// Returns why the lane of a credential rests, here or at another node.
    pub(super) async fn resting(
        &self,
        app: AppId,
        provider: ProviderKind,
    ) -> ServiceResult<Option<ParkReason>> {
        if let Some(here) = self.pipeline.parked(app, provider) {
            return Ok(Some(here));
        }
        match self.is_shared {
            true => Ok(parked_elsewhere(&self.store.nodes().await?, app, provider)),
            false => Ok(None),
        }
    }

    /// Looks for credentials of an app that another server has put.
    pub(super) async fn find_credentials(&self, app: AppId) -> ServiceResult<()> {
        let known = self.credentials.of_app(app);
        for provider in ProviderKind::ALL.iter().copied().filter(|provider| !known.contains(provider)) {
            match self.store.credential(app, provider).await {
                Ok(_) => self.credentials.add(app, provider),
                // One that cannot be opened sends nothing either.
                Err(StoreError::NotFound(_) | StoreError::Damaged(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Looks at all credentials again, as after SIGHUP.
    pub async fn reload_credentials(&self) -> ServiceResult<usize> {
        loop {
            let before = self.credentials.changes();
            let credentials = self.store.credentials().await?;
            // What was put or removed here meanwhile is newer than what was read.
            if self.credentials.replace(&credentials, before) {
                return Ok(credentials.len());
            }
        }
    }
}

/// Returns why a lane rests at one of the other nodes: of this one its pipeline knows more than its last report.
fn parked_elsewhere(nodes: &[NodeRecord], app: AppId, provider: ProviderKind) -> Option<ParkReason> {
    let mut lanes = nodes.iter().filter(|node| !node.is_own).flat_map(|node| &node.parked);
    let lane = lanes.find(|lane| (lane.app, lane.provider) == (app, provider))?;
    Some(ParkReason { reason: lane.reason, detail: lane.detail.clone(), until: lane.until })
}

fn may_not_connect(host: RefusedHost) -> Problem {
    let hint = allowing(&host);
    let problem = Problem::new(ErrorCode::AddressRefused, host.refused.to_string()).with_hint(hint);
    Problem { field: Some(host.field), ..problem }
}

/// Returns how an operator allows an address.
fn allowing(host: &RefusedHost) -> String {
    let allowance = host.refused.allowance();
    format!(
        "the operator of the server can allow it with outbound.allowed_networks = [\"{allowance}\"] (`stentor serve --allow-network {allowance}`)"
    )
}

/// Returns which credential it is and how much it may send; what could be a secret is left out, an endpoint too.
fn in_words(credential: &Credential) -> String {
    let summary = summary(credential);
    let quota = summary.quota_per_minute.map_or("none".to_owned(), |quota| quota.to_string());
    let names: Vec<_> = shown(credential).into_iter().map(|(_, text)| text).collect();
    let endpoint = if summary.endpoint.is_some() { "own endpoint, " } else { "" };
    format!("{endpoint}quota {quota} {}", names.join(" ")).trim_end().to_owned()
}

fn unusable(error: CredentialError) -> Problem {
    match error {
        CredentialError::Invalid(invalid) => invalid.into(),
        CredentialError::Unusable(Invalid { field, problem }) => {
            Problem::new(ErrorCode::CredentialUnusable, problem).at(field)
        }
    }
}

fn summary(credential: &Credential) -> CredentialSummary {
    let endpoint = read(credential)["endpoint"].as_str().map(crate::providers::shown_endpoint);
    CredentialSummary {
        names: shown(credential).into_iter().collect(),
        quota_per_minute: crate::providers::quota(credential),
        endpoint,
    }
}

/// Lists what its adapter shows of a credential, in the adapter's order.
fn shown(credential: &Credential) -> Vec<(&'static str, String)> {
    stentor_providers::descriptor(credential.provider).credential.summary(&read(credential))
}

fn read(credential: &Credential) -> Value {
    serde_json::from_str(&credential.secret).unwrap_or_default()
}
