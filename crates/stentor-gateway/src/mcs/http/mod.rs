//! HTTP requests of programs before they connect. Each request is a function of its parts; the server provides the routes.

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
pub use web::{INSTALLATION_HEADER, McsWebCaller, register_web, subscribe, unregister_web};

/// Authorizes registrations of programs. Each positive answer of any method counts against the app's limit.
#[async_trait]
pub trait McsRegistrar: Send + Sync {
    /// Returns the id of an app's key if programs may register with it. Fails with LimitReached if there are too many registrations.
    async fn key_of(&self, app: AppId, key: &str) -> Result<Option<KeyId>, StoreError>;

    /// Returns true if a program may register for an app. `installed_with` is the id of the key with which the program was installed;
    /// `None` for protocols without a key, such as GCM. Fails with LimitReached if there are too many registrations.
    async fn may_register(&self, app: AppId, installed_with: Option<KeyId>) -> Result<bool, StoreError>;

    /// Returns the app whose messages are signed with an application server's key (VAPID, base64url). If it is `None`, the program gets a
    /// provisional token, which is accepted only by the web registration of an app.
    async fn app_of_server_key(&self, _key: &str) -> Result<Option<AppId>, StoreError> {
        Ok(None)
    }
}

/// Parses an app's id, as text or in decimal.
fn app_of(text: &str) -> Option<AppId> {
    text.parse().ok().or_else(|| text.parse().ok().filter(|raw| *raw > 0).map(AppId::from_raw))
}
