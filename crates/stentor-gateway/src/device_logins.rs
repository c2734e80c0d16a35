//! Logins of devices by token and secret.

use stentor_core::device::{Device, DeviceKeys, PushToken};
use stentor_core::id::AppId;
use stentor_core::ports::store::StoreError;

use crate::gateway::Gateway;
use crate::identity::{DeviceIdentity, app_of};

/// The reason for a failed login of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The token belongs to no device, or the secret does not match it.
    #[error("the token or the secret is wrong: register the device again")]
    Refused,
    /// The login cannot be checked now.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The keys of a device at its login.
pub(crate) enum LoginKeys {
    /// They were not read.
    Unknown,
    /// They are current as long as no device has been cut off since.
    Read {
        /// The keys, if it has any.
        keys: Option<DeviceKeys>,
        /// Number of devices cut off before the read.
        cut_offs: u32,
    },
}

impl Gateway {
    /// Authenticates a device by its token and secret.
    pub async fn login(&self, token: &str, secret: &str) -> Result<DeviceIdentity, LoginError> {
        Ok(self.login_with_keys(token, secret).await?.0)
    }

    /// Authenticates a device by its token and secret, and returns its keys as well.
    pub(crate) async fn login_with_keys(
        &self,
        token: &str,
        secret: &str,
    ) -> Result<(DeviceIdentity, LoginKeys), LoginError> {
        // Checked first: a wrong guess costs a hash and no look-up.
        if !self.key().fits(token, secret) {
            return Err(self.refused());
        }
        let (app, token) = self.read_token(token)?;
        // Before the read: keys that change after it make these stale.
        let cut_offs = self.cut_offs();
        let Some(device) = self.find_holder(app, &token).await? else {
            return Ok((self.take_offer(app, &token).await?, LoginKeys::Unknown));
        };
        let identity = DeviceIdentity { app, device: device.id };
        Ok((identity, LoginKeys::Read { keys: device.keys, cut_offs }))
    }

    /// Finds the device of a token, for callers that are authorized by other means.
    pub async fn holder(&self, token: &str) -> Result<DeviceIdentity, LoginError> {
        let (app, token) = self.read_token(token)?;
        let device = self.find_holder(app, &token).await?.ok_or_else(|| self.refused())?;
        Ok(DeviceIdentity { app, device: device.id })
    }

    fn read_token(&self, token: &str) -> Result<(AppId, PushToken), LoginError> {
        app_of(token).zip(PushToken::new(token).ok()).ok_or_else(|| self.refused())
    }

    async fn find_holder(&self, app: AppId, token: &PushToken) -> Result<Option<Device>, StoreError> {
        let found = self.state().holders.find((app, token.clone())).await?;
        // An unlisted device is a token known only to its senders, for instance a replaced one; it must not log in.
        Ok(found.filter(|device| device.listed && device.retired.is_none()))
    }

    /// Logs a device in with the token offered to it, which replaces its former one.
    async fn take_offer(&self, app: AppId, token: &PushToken) -> Result<DeviceIdentity, LoginError> {
        match self.store().take_offered_token(app, token, self.clock().now()).await? {
            Some(device) => {
                // Ends a session with the former token.
                self.cut_off(device);
                Ok(DeviceIdentity { app, device })
            }
            // Another connection may have taken it a moment ago.
            None => {
                let device = self.find_holder(app, token).await?.ok_or_else(|| self.refused())?;
                Ok(DeviceIdentity { app, device: device.id })
            }
        }
    }

    fn refused(&self) -> LoginError {
        self.state().counts.note_refused_login();
        LoginError::Refused
    }
}
