//! Secrets as an engine keeps them: sealed on the way in, opened on the way out.

use std::sync::Arc;

use serde_json::{Value, json};
use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::StoreError;
use stentor_core::time::Timestamp;
use stentor_core::upstream::{FormerSecret, UpstreamWebhook};

use crate::seal::{SealKeyId, SealKeys, SealedPlace, SecretForm, kept};

/// The keys of a store; without keys, secrets are stored as they are given.
#[derive(Clone)]
pub(crate) struct Vault(Option<Arc<SealKeys>>);

impl Vault {
    /// Creates a vault.
    pub(crate) fn new(keys: Option<SealKeys>) -> Self {
        Self(keys.map(Arc::new))
    }

    /// Returns the keys, if secrets are sealed.
    pub(crate) fn keys(&self) -> Option<&SealKeys> {
        self.0.as_deref()
    }

    /// Seals the secret of a credential.
    pub(crate) fn seal(&self, credential: Credential) -> Result<Credential, StoreError> {
        let place = SealedPlace::Credential(credential.app, credential.provider);
        Ok(Credential { secret: self.sealed(place, credential.secret)?, ..credential })
    }

    /// Opens the secret of a credential as it was kept.
    pub(crate) fn open(&self, stored: Credential) -> Result<Credential, StoreError> {
        let Some(keys) = &self.0 else { return Ok(stored) };
        let Credential { app, provider, .. } = stored;
        match keys.open(SealedPlace::Credential(app, provider), &stored.secret) {
            Some(secret) => Ok(Credential { secret, ..stored }),
            None => {
                Err(StoreError::Damaged(format!("the credential of {app} for {provider} cannot be opened")))
            }
        }
    }

    /// Returns the stored form of a webhook. Its address is sealed with its secret, because a part of it may be secret.
    pub(crate) fn seal_webhook(&self, webhook: UpstreamWebhook) -> Result<UpstreamWebhook, StoreError> {
        let mut content = json!({"url": webhook.url, "secret": webhook.secret});
        if let Some(FormerSecret { secret, until }) = &webhook.former {
            content["former"] = json!({"secret": secret, "until": until.as_millis()});
        }
        let secret = self.sealed(SealedPlace::Webhook(webhook.app), content.to_string())?;
        Ok(UpstreamWebhook { url: String::new(), secret, former: None, ..webhook })
    }

    /// Opens the stored form of a webhook.
    pub(crate) fn open_webhook(&self, stored: UpstreamWebhook) -> Result<UpstreamWebhook, StoreError> {
        let opened = match &self.0 {
            None => Some(stored.secret.clone()),
            Some(keys) => keys.open(SealedPlace::Webhook(stored.app), &stored.secret),
        };
        let content: Option<Value> = opened.and_then(|text| serde_json::from_str(&text).ok());
        let part = |name: &str| Some(content.as_ref()?[name].as_str()?.to_owned());
        let cannot = || StoreError::Damaged(format!("the webhook of {} cannot be opened", stored.app));
        let (url, secret) = part("url").zip(part("secret")).ok_or_else(cannot)?;
        let former = content.as_ref().and_then(|content| former_of(&content["former"]));
        Ok(UpstreamWebhook { url, secret, former, ..stored })
    }

    fn sealed(&self, place: SealedPlace, secret: String) -> Result<String, StoreError> {
        let Some(keys) = &self.0 else { return Ok(secret) };
        let failed = || StoreError::Unavailable("a secret cannot be sealed".to_owned());
        keys.seal(place, &secret).ok_or_else(failed)
    }

    /// Refuses keys among which one is missing that a row is sealed under.
    pub(crate) fn check<'a>(
        &self,
        wanted: impl IntoIterator<Item = &'a SealKeyId>,
    ) -> Result<(), StoreError> {
        let known = |id: &SealKeyId| self.0.as_ref().is_some_and(|keys| keys.knows(*id));
        match wanted.into_iter().find(|id| !known(id)) {
            None => Ok(()),
            Some(id) => {
                let why = format!("credentials are sealed under the key {id}, which is not given");
                Err(StoreError::Conflict(why))
            }
        }
    }
}

/// Returns the place of a credential by the numbers of its app and provider, or `None` if they are not valid.
pub(crate) fn credential_place((app, provider): (i64, i64)) -> Option<SealedPlace> {
    let app = AppId::from_raw(u64::try_from(app).ok()?);
    Some(SealedPlace::Credential(app, ProviderKind::from_code(u8::try_from(provider).ok()?)?))
}

fn former_of(stored: &Value) -> Option<FormerSecret> {
    let secret = stored["secret"].as_str()?.to_owned();
    Some(FormerSecret { secret, until: Timestamp::from_millis(stored["until"].as_i64()?) })
}

/// Returns the place of a webhook by its app as a number.
pub(crate) fn webhook_place(app: i64) -> Option<SealedPlace> {
    Some(SealedPlace::Webhook(AppId::from_raw(u64::try_from(app).ok()?)))
}

/// Returns the record of a place under the present key; `None` when it is, or when it cannot be read.
pub(crate) fn sealed_anew(keys: &SealKeys, place: Option<SealedPlace>, record: &str) -> Option<String> {
    let place = place?;
    let secret = match kept(record) {
        SecretForm::Clear => Some(record.to_owned()),
        SecretForm::Sealed(id) if id == keys.present() => return None,
        SecretForm::Sealed(_) => keys.open(place, record),
        SecretForm::Torn => None,
    };
    if secret.is_none() {
        tracing::error!(?place, "a secret cannot be opened: put it again");
    }
    keys.seal(place, &secret?)
}
