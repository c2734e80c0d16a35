//! Credentials of apps at push services: checked when put, never shown again.

use std::collections::BTreeMap;

use parking_lot::{RwLock, RwLockWriteGuard};
use serde_json::{Map, Value};
use stentor_core::app::{Credential, Scope, Scopes};
use stentor_core::audit::AuditAction;
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, KeyId};
use stentor_core::outcome::Reason;
use stentor_core::ports::provider::{CredentialError, ServiceStanding};
use stentor_core::ports::store::{Change, KeyFilter, NodeRecord, StoreError};
use stentor_providers::RefusedHost;

use super::audit::{AuditSubject, Author};
use super::{Caller, ErrorCode, Identity, Origin, Problem, Service, ServiceResult};
use crate::contract::Serve;
use crate::contract::credentials::{
    CredentialCheck, CredentialList, CredentialRequest, CredentialSummary, CredentialView, PushServiceStatus,
    QuotaStatus,
};
use crate::contract::table::{CheckCredential, DeleteCredential, ListCredentials, PutCredential};
use crate::decode::decode_with;
use crate::pipeline::settle::Parking;
use crate::pipeline::stats::QuotaStats;

/// The providers for which each app has credentials, in memory because every message needs them.
#[derive(Debug, Default)]
pub(super) struct Kinds(RwLock<KnownKinds>);

#[derive(Debug, Default)]
struct KnownKinds {
    by_app: BTreeMap<AppId, Vec<ProviderKind>>,
    /// Number of credentials put and removed here.
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
        // A list that is being read concurrently is outdated and must not replace this one.
        known.changes += 1;
        known.by_app.remove(&app).unwrap_or_default()
    }

    fn changes(&self) -> u64 {
        self.0.read().changes
    }

    /// Replaces the contents, unless something was changed here since the counter was `changes`. Returns true if it did.
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
        let secret = Value::Object(fields.clone()).to_string();
        let mut credential = Credential { app, provider, secret, updated_at: self.now() };
        // A literal address can be checked without a look-up; names are checked at each connection.
        if let Some(host) = crate::providers::refused_host(&credential, &self.settings.outbound) {
            return Err(may_not_connect(host));
        }
        let author = Author::of(&identity, from);
        let subject = AuditSubject::new(AuditAction::CredentialPut, app, provider);
        self.administrated_by(&author, &subject, identity, app).await?;
        if let Some(complete) = stentor_providers::descriptor(provider).complete {
            let before = self.present_fields(app, provider).await?;
            let fields = complete(fields, before.as_ref()).map_err(unusable)?;
            credential.secret = Value::Object(fields).to_string();
        }
        // The adapter parses the key, so that an invalid one is refused now and not at the first message.
        crate::providers::check_credential(&credential, self.clock.clone()).map_err(unusable)?;
        let _turn = self.check_vapid_key(&credential).await?;
        let subject = subject.with_detail(&in_words(&credential));
        self.change(author, subject, Change::PutCredential(credential)).await?;
        // After the commit, so that a provider built because of it reads the new credential.
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
                // Removed by another request, perhaps at another server.
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
        // A missing credential and one that does not work get different responses.
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
        let author = Author::of(&identity, from);
        let subject = AuditSubject::new(AuditAction::CredentialDelete, app, provider);
        let app = self.administrated_by(&author, &subject, identity, app).await?;
        self.change(author, subject, Change::DeleteCredential(app, provider)).await?;
        // After the commit, as above; otherwise a lane could read the credential once more.
        self.credentials.remove(app, provider);
        self.pipeline.changed(app, provider);
        Ok(())
    }
}

impl Service {
    /// Returns the fields of the stored credential, if there is one that can be read.
    async fn present_fields(
        &self,
        app: AppId,
        provider: ProviderKind,
    ) -> ServiceResult<Option<Map<String, Value>>> {
        match self.store.credential(app, provider).await {
            Ok(credential) => Ok(read(&credential).as_object().cloned()),
            Err(StoreError::NotFound(_) | StoreError::Damaged(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that a device may register itself with the caller's key, and that not too many devices of the app do so at once.
    pub(crate) async fn admit_device(&self, caller: Caller, origin: Origin) -> ServiceResult<()> {
        caller.require_any(&[Scope::Join, Scope::Register])?;
        // Counted before the first access to the store, which this limit protects.
        self.count_join(caller.app())?;
        self.open_gateway(caller, origin).await
    }

    /// Returns true if devices may still register with a key that an app used before.
    pub(crate) async fn may_join_still(&self, app: AppId, key: KeyId) -> ServiceResult<bool> {
        let scopes =
            match self.store.keys(KeyFilter::App(app)).await?.into_iter().find(|known| known.id == key) {
                Some(known) => Some(known.scopes),
                None => {
                    let account = self.keyring.account_identity(self.store.as_ref(), key).await?;
                    account.and_then(|account| account.on(app).ok()).map(|caller| caller.scopes())
                }
            };
        let may = |scopes: Scopes| scopes.allows(Scope::Join) || scopes.allows(Scope::Register);
        Ok(scopes.is_some_and(may))
    }

    /// Counts a device that registers itself. Refuses it if too many others of the app did so just before.
    pub(crate) fn count_join(&self, app: AppId) -> ServiceResult<()> {
        let too_many = "too many devices of this app register at once";
        self.joins.take(app).map_err(|_| Problem::new(ErrorCode::RateLimited, too_many))
    }

    /// Enables the gateway for an app if one of these devices uses it; the app needs no credential for that.
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

    /// Enables the gateway for an app with the registration of its first device.
    async fn open_gateway(&self, caller: Caller, origin: Origin) -> ServiceResult<()> {
        let (app, provider) = (caller.app(), ProviderKind::Gateway);
        // Only the first device of an app causes a change; for later ones the credential is known in memory.
        if self.credentials.of_app(app).contains(&provider) {
            return Ok(());
        }
        // A registration has no origin, so that the entry would not name the person.
        if caller.is_person() && origin.person.is_none() {
            return Err(Problem::new(ErrorCode::Forbidden, "the app has no credential of the gateway yet")
                .with_hint("an admin sets it, or a key registers the first device"));
        }
        let credential = Credential { app, provider, secret: "{}".to_owned(), updated_at: self.now() };
        let subject =
            AuditSubject::new(AuditAction::CredentialPut, app, provider).with_detail(&in_words(&credential));
        self.change(Author::for_caller(caller, origin), subject, Change::PutCredential(credential)).await?;
        // Also if a concurrent request did it just now: putting the same credential again changes nothing.
        self.credentials.add(app, provider);
        self.pipeline.changed(app, provider);
        Ok(())
    }

    /// Returns the view of a credential, with its quota and the reason of its pause on this or another node.
    async fn view(&self, credential: &Credential, nodes: &[NodeRecord]) -> ServiceResult<CredentialView> {
        let (app, provider) = (credential.app, credential.provider);
        let resting = self.pipeline.parking(app, provider).or_else(|| self.is_refused(credential));
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
            push_services: self.pipeline.services(app, provider).into_iter().map(Into::into).collect(),
        })
    }

    /// Returns the state of a credential's quota; for a quota that all nodes share, by its level in the store.
    async fn quota_of(&self, credential: &Credential) -> ServiceResult<Option<QuotaStats>> {
        let (app, provider) = (credential.app, credential.provider);
        let level = self.store.quota_level(app, provider).await?;
        let shared = crate::providers::quota(credential).zip(level);
        Ok(match shared {
            Some((per_minute, level)) => Some(self.pipeline.shared_quota(app, provider, per_minute, level)),
            None => self.pipeline.quota(app, provider),
        })
    }

    /// Returns the reason why a credential stored under earlier settings cannot be used, before anything is sent with it.
    fn is_refused(&self, credential: &Credential) -> Option<Parking> {
        let host = crate::providers::refused_host(credential, &self.settings.outbound)?;
        let detail = format!("{}: {}; {}", host.field, host.refused, allowing(&host));
        Some(Parking { reason: Reason::AddressRefused, detail, until: None })
    }

    /// Returns the reason why the lane of a credential rests, on this or another node.
    pub(super) async fn resting(&self, app: AppId, provider: ProviderKind) -> ServiceResult<Option<Parking>> {
        if let Some(here) = self.pipeline.parking(app, provider) {
            return Ok(Some(here));
        }
        match self.settings.is_shared {
            true => Ok(parked_elsewhere(&self.store.nodes().await?, app, provider)),
            false => Ok(None),
        }
    }

    /// Reads credentials of an app that another server has put.
    pub(super) async fn find_credentials(&self, app: AppId) -> ServiceResult<()> {
        let known = self.credentials.of_app(app);
        for provider in ProviderKind::ALL.iter().copied().filter(|provider| !known.contains(provider)) {
            match self.store.credential(app, provider).await {
                Ok(_) => self.credentials.add(app, provider),
                // A credential that cannot be decrypted cannot send either.
                Err(StoreError::NotFound(_) | StoreError::Damaged(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads all credentials again, for example after SIGHUP.
    pub async fn reload_credentials(&self) -> ServiceResult<usize> {
        loop {
            let before = self.credentials.changes();
            let credentials = self.store.credentials().await?;
            // Changes made here during the reading are newer than its result.
            if self.credentials.replace(&credentials, before) {
                return Ok(credentials.len());
            }
        }
    }
}

impl From<ServiceStanding> for PushServiceStatus {
    fn from(standing: ServiceStanding) -> Self {
        let ServiceStanding { origin, per_minute, resting: reason, backlog } = standing;
        Self { origin, per_minute, reason, backlog_seconds: backlog.as_secs_f64() }
    }
}

/// Returns the reason why a lane rests on another node. This node's own report is skipped, because its pipeline is more up to date.
fn parked_elsewhere(nodes: &[NodeRecord], app: AppId, provider: ProviderKind) -> Option<Parking> {
    let mut lanes = nodes.iter().filter(|node| !node.is_own).flat_map(|node| &node.parked);
    let lane = lanes.find(|lane| (lane.app, lane.provider) == (app, provider))?;
    Some(Parking { reason: lane.reason, detail: lane.detail.clone(), until: lane.until })
}

fn may_not_connect(host: RefusedHost) -> Problem {
    let hint = allowing(&host);
    let problem = Problem::new(ErrorCode::AddressRefused, host.refused.to_string()).with_hint(hint);
    Problem { field: Some(host.field), ..problem }
}

/// Returns the setting by which the operator allows an address.
fn allowing(host: &RefusedHost) -> String {
    let allowance = host.refused.allowance();
    format!(
        "the operator of the server can allow it with outbound.allowed_networks = [\"{allowance}\"] (`stentor serve --allow-network {allowance}`)"
    )
}

/// Describes a credential and its quota for the audit trail, without anything that could be secret, such as an endpoint.
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

/// Lists the public fields of a credential, in the adapter's order.
fn shown(credential: &Credential) -> Vec<(&'static str, String)> {
    stentor_providers::descriptor(credential.provider).credential.summary(&read(credential))
}

fn read(credential: &Credential) -> Value {
    serde_json::from_str(&credential.secret).unwrap_or_default()
}
