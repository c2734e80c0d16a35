//! What programs ask over HTTP before they connect. Each request is a function of its parts; routes are the server's.

mod checkin;
mod form;
mod installations;
mod register;
mod reply;
mod signed;
mod web;

use async_trait::async_trait;
use stentor_core::id::{AppId, KeyId};
use stentor_core::ports::store::StoreError;

pub use checkin::check_in;
pub use installations::{McsInstallation, install, renew_installation};
pub use register::register;
pub use reply::McsReply;
pub use web::{INSTALLATION_HEADER, register_web, subscribe, unregister_web};

/// Decides for which apps programs may register. Each answer that lets one in counts against the app's limit, whichever way it comes.
#[async_trait]
pub trait McsRegistrar: Send + Sync {
    /// Returns which key of an app a text is, if programs may register with it; LimitReached where too many do.
    async fn key_of(&self, app: AppId, key: &str) -> Result<Option<KeyId>, StoreError>;

    /// Returns whether a program may register for an app that was installed with a key of it, and has only the key's id; `None` where
    /// its protocol has no place for one, as GCM's has none. LimitReached where too many do.
    async fn may_register(&self, app: AppId, installed_with: Option<KeyId>) -> Result<bool, StoreError>;

    /// Returns the app whose messages an application server's key (VAPID, base64url) signs; `None` where it is nobody's: the
    /// program is then told a token that only the web registration of an app takes.
    async fn app_of_server_key(&self, _key: &str) -> Result<Option<AppId>, StoreError> {
        Ok(None)
    }
}

/// Reads an app's id, as text or in decimal.
fn app_of(text: &str) -> Option<AppId> {
    text.parse().ok().or_else(|| text.parse().ok().filter(|raw| *raw > 0).map(AppId::from_raw))
}
