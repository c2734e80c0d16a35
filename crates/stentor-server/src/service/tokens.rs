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
            let open = found.iter_mut().zip(held).filter(|(found, _)| found.is_none());
            open.for_each(|(found, held)| *found = held);
        }
        Ok(found)
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
