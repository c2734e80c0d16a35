//! Secrets as an engine keeps them: sealed on the way in, opened on the way out.

use std::sync::Arc;

use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::StoreError;

use crate::seal::{SealKeyId, SealKeys, SecretForm, kept};

/// The keys of a store; without any, secrets are kept as they are given.
#[derive(Clone)]
pub(crate) struct Vault(Option<Arc<SealKeys>>);

impl Vault {
    /// Keeps the keys.
    pub(crate) fn new(keys: Option<SealKeys>) -> Self {
        Self(keys.map(Arc::new))
    }

    /// Returns the keys, if secrets are sealed.
    pub(crate) fn keys(&self) -> Option<&SealKeys> {
        self.0.as_deref()
    }

    /// Seals the secret of a credential.
    pub(crate) fn seal(&self, credential: Credential) -> Result<Credential, StoreError> {
        let Some(keys) = &self.0 else { return Ok(credential) };
        let place = (credential.app, credential.provider);
        let failed = || StoreError::Unavailable("the credential cannot be sealed".to_owned());
        Ok(Credential { secret: keys.seal(place, &credential.secret).ok_or_else(failed)?, ..credential })
    }

    /// Opens the secret of a credential as it was kept.
    pub(crate) fn open(&self, kept: Credential) -> Result<Credential, StoreError> {
        let Some(keys) = &self.0 else { return Ok(kept) };
        let Credential { app, provider, .. } = kept;
        match keys.open((app, provider), &kept.secret) {
            Some(secret) => Ok(Credential { secret, ..kept }),
            None => {
                Err(StoreError::Damaged(format!("the credential of {app} for {provider} cannot be opened")))
            }
        }
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

/// Returns the record of a row, by app and provider as numbers, under the present key; `None` when it is, or when it cannot
/// be read.
pub(crate) fn sealed_anew(keys: &SealKeys, (app, provider): (i64, i64), record: &str) -> Option<String> {
    let app = AppId::from_raw(u64::try_from(app).ok()?);
    let place = (app, ProviderKind::from_code(u8::try_from(provider).ok()?)?);
    let secret = match kept(record) {
        SecretForm::Clear => Some(record.to_owned()),
        SecretForm::Sealed(id) if id == keys.present() => return None,
        SecretForm::Sealed(_) => keys.open(place, record),
        SecretForm::Torn => None,
    };
    if secret.is_none() {
        tracing::error!(%app, provider = %place.1, "a credential cannot be opened: put it again");
    }
    keys.seal(place, &secret?)
}
