//! Look-up of devices by push token, for callers that do not use device ids.

use stentor_core::device::{Device, DevicePatch, ProviderKind, PushToken, Registration};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ports::store::{Precondition, StoreError};

use super::{Caller, Service, ServiceResult};
use crate::contract::table::{SendMessage, ShowDevice};

impl Service {
    /// Finds the device that holds each token, at any push service. Providers for which the app has a credential come first. The others are
    /// searched too, so that their devices' tokens are not reported as unknown.
    pub(crate) async fn holders(
        &self,
        caller: Caller,
        tokens: &[PushToken],
    ) -> ServiceResult<Vec<Option<Device>>> {
        caller.allow::<SendMessage>()?;
        let mut found = vec![None; tokens.len()];
        let mut providers = self.credentials.of_app(caller.app());
        let others = stentor_providers::all().map(|adapter| adapter.kind);
        let others: Vec<_> = others.filter(|kind| !providers.contains(kind)).collect();
        providers.extend(others);
        for provider in providers {
            self.find_holders(caller.app(), provider, tokens, &mut found).await?;
        }
        Ok(found)
    }

    /// Fills in the devices of one push service that hold the remaining tokens, in either spelling.
    async fn find_holders(
        &self,
        app: AppId,
        provider: ProviderKind,
        tokens: &[PushToken],
        found: &mut [Option<Device>],
    ) -> ServiceResult<()> {
        let adapter = stentor_providers::descriptor(provider);
        let spelled = |token: &PushToken| Some(adapter.spelled(token.clone()));
        self.find_spelled(app, provider, tokens, found, spelled).await?;
        if adapter.ignores_case() {
            self.find_spelled(app, provider, tokens, found, |token| adapter.older_spelling(token)).await?;
        }
        Ok(())
    }

    async fn find_spelled(
        &self,
        app: AppId,
        provider: ProviderKind,
        tokens: &[PushToken],
        found: &mut [Option<Device>],
        spelled: impl Fn(&PushToken) -> Option<PushToken>,
    ) -> ServiceResult<()> {
        let can_be = stentor_providers::descriptor(provider).can_be_token;
        let open = found.iter_mut().zip(tokens).filter(|(found, _)| found.is_none());
        let open = open.filter(|(_, token)| can_be(token.expose()));
        let (places, respelled): (Vec<_>, Vec<_>) =
            open.filter_map(|(place, token)| Some((place, spelled(token)?))).unzip();
        if respelled.is_empty() {
            return Ok(());
        }
        let held = self.store.holders(app, provider, &respelled).await?;
        places.into_iter().zip(held).for_each(|(place, held)| *place = held);
        Ok(())
    }

    /// Updates tokens that an earlier version stored in another spelling, so that registering a device again creates no second one.
    pub(super) async fn respell(&self, app: AppId, registrations: &[Registration]) -> ServiceResult<()> {
        for adapter in stentor_providers::all().filter(|adapter| adapter.ignores_case()) {
            let matching = registrations.iter().filter(|registration| registration.provider == adapter.kind);
            let tokens = matching.flat_map(|one| [Some(&one.token), one.replaces()]).flatten();
            let both: Vec<_> =
                tokens.filter_map(|token| Some((token.clone(), adapter.older_spelling(token)?))).collect();
            if both.is_empty() {
                continue;
            }
            let older: Vec<_> = both.iter().map(|(_, older)| older.clone()).collect();
            let held = self.store.holders(app, adapter.kind, &older).await?;
            for (device, (token, _)) in held.into_iter().zip(both) {
                let Some(device) = device else { continue };
                let patch = DevicePatch { token: Some(token), ..DevicePatch::default() };
                match self
                    .store
                    .update_device(app, device.id, &patch, self.now(), &Precondition::none())
                    .await
                {
                    // If both spellings already have devices, the one being registered is used.
                    Ok(_) | Err(StoreError::Conflict(_) | StoreError::NotFound(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Finds the gateway devices that formerly had these tokens and now have others.
    pub(crate) async fn successors(
        &self,
        caller: Caller,
        tokens: &[PushToken],
    ) -> ServiceResult<Vec<Option<Device>>> {
        caller.allow::<SendMessage>()?;
        let texts: Vec<String> = tokens.iter().map(|token| token.expose().to_owned()).collect();
        let mut found = Vec::with_capacity(tokens.len());
        for device in self.store.replaced_tokens(caller.app(), &texts).await? {
            found.push(match device {
                Some(device) => self.open_device(caller, device).await?,
                None => None,
            });
        }
        Ok(found)
    }

    async fn open_device(&self, caller: Caller, device: DeviceId) -> ServiceResult<Option<Device>> {
        match self.store.device(caller.app(), device).await {
            // A retired device could not be reached by its new token either.
            Ok(device) => Ok(Some(device).filter(|device| device.retired.is_none())),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the token of a device; `None` if the device does not exist.
    pub(crate) async fn token_of(&self, caller: Caller, device: DeviceId) -> ServiceResult<Option<String>> {
        caller.allow::<ShowDevice>()?;
        match self.store.device(caller.app(), device).await {
            Ok(device) => Ok(Some(device.token.expose().to_owned())),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
