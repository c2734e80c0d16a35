//! Push tokens, as those know devices who never asked for an id.

use stentor_core::device::{Device, PushToken};
use stentor_core::id::DeviceId;
use stentor_core::ports::store::StoreError;

use super::{Caller, Service, ServiceResult};
use crate::contract::table::{SendMessage, ShowDevice};

impl Service {
    /// Finds the device that holds each token, at whichever push service the app has a credential for.
    pub(crate) async fn holders(
        &self,
        caller: Caller,
        tokens: &[PushToken],
    ) -> ServiceResult<Vec<Option<Device>>> {
        caller.allow::<SendMessage>()?;
        let mut found = vec![None; tokens.len()];
        for provider in self.credentials.of_app(caller.app()) {
            let held = self.store.holders(caller.app(), provider, tokens).await?;
            // Where two push services know the same text, the one that comes first counts.
            let open = found.iter_mut().zip(held).filter(|(found, _)| found.is_none());
            open.for_each(|(found, held)| *found = held);
        }
        Ok(found)
    }

    /// Finds the devices of the gateway that once had these tokens and have others now.
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
            // One that is retired could not be reached by its new token either.
            Ok(device) => Ok(Some(device).filter(|device| device.retired.is_none())),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the token of a device; `None` when it is gone.
    pub(crate) async fn token_of(&self, caller: Caller, device: DeviceId) -> ServiceResult<Option<String>> {
        caller.allow::<ShowDevice>()?;
        match self.store.device(caller.app(), device).await {
            Ok(device) => Ok(Some(device.registration.token.expose().to_owned())),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
