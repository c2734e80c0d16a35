//! Webhooks of apps, to which upstream messages are posted.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use stentor_core::audit::AuditAction;
use stentor_core::id::AppId;
use stentor_core::outbound::OutboundPolicy;
use stentor_core::ports::store::{Change, StoreError};
use stentor_core::upstream::{FormerSecret, UpstreamWebhook};
use stentor_providers::Outbound;
use tokio::sync::Notify;

use super::audit::{AuditSubject, Author};
use super::{ErrorCode, Identity, Origin, Problem, Service, ServiceResult};
use crate::contract::Serve;
use crate::contract::table::{DeleteUpstreamWebhook, PutUpstreamWebhook, ShowUpstreamWebhook};
use crate::contract::webhooks::{
    NewUpstreamWebhook, UpstreamWebhookRequest, UpstreamWebhookView, WEBHOOK_URL_MAX_BYTES,
};

/// Prefix of a secret, by which people and programs recognise it.
const SECRET_MARK: &str = "whsec_";
/// Bytes of a generated secret.
const SECRET_BYTES: usize = 32;
/// Validity of a secret after its replacement.
const FORMER_SECRET_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Permitted number of bytes of a secret.
const SECRET_BYTES_RANGE: std::ops::RangeInclusive<usize> = 24..=64;

impl Serve<PutUpstreamWebhook> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        app: AppId,
        UpstreamWebhookRequest { url, secret }: UpstreamWebhookRequest,
    ) -> ServiceResult<NewUpstreamWebhook> {
        let address = address(&url)?;
        let author = Author::of(&identity, from);
        let subject = AuditSubject::new(AuditAction::WebhookPut, app, app).with_detail(&origin(&address));
        let app = self.administrated_by(&author, &subject, identity, app).await?;
        // A name is resolved at each post; a literal address can be refused at once.
        self.check_webhook(&address)?;
        let is_given = secret.is_some();
        let secret = match secret {
            Some(secret) => checked(secret)?,
            None => format!("{SECRET_MARK}{}", STANDARD.encode(rand::random::<[u8; SECRET_BYTES]>())),
        };
        // The former secret stays valid for a day, so that the app can change both sides one after the other.
        let (updated_at, former) = (self.now(), self.former_secret(app, &secret).await?);
        let webhook = UpstreamWebhook { app, url, secret, updated_at, former };
        self.change(author, subject, Change::PutUpstreamWebhook(webhook.clone())).await?;
        // Leaves a permit: a task that is reading the webhooks at this moment reads them once more.
        self.webhooks_changed.notify_one();
        let UpstreamWebhook { url, secret, updated_at, .. } = webhook;
        // A given secret is known to the caller and never shown again.
        Ok(NewUpstreamWebhook { url, updated_at: updated_at.into(), secret: (!is_given).then_some(secret) })
    }
}

impl Serve<ShowUpstreamWebhook> for Service {
    async fn serve(&self, identity: Identity, app: AppId, (): ()) -> ServiceResult<UpstreamWebhookView> {
        let app = self.administrated(identity, app).await?;
        Ok(self.store.upstream_webhook(app).await?.into())
    }
}

impl Serve<DeleteUpstreamWebhook> for Service {
    async fn serve(&self, (identity, from): (Identity, Origin), app: AppId, (): ()) -> ServiceResult<()> {
        let author = Author::of(&identity, from);
        let subject = AuditSubject::new(AuditAction::WebhookDelete, app, app);
        let app = self.administrated_by(&author, &subject, identity, app).await?;
        self.change(author, subject, Change::DeleteUpstreamWebhook(app)).await?;
        self.webhooks_changed.notify_one();
        Ok(())
    }
}

impl Service {
    /// Returns the webhooks of all apps.
    pub(crate) async fn webhooks(&self) -> Result<Vec<UpstreamWebhook>, StoreError> {
        self.store.upstream_webhooks().await
    }

    /// Returns the notification of changed webhooks.
    pub(crate) const fn webhooks_changed(&self) -> &Notify {
        &self.webhooks_changed
    }

    /// Returns the policy for the addresses of webhooks.
    pub(crate) const fn webhook_policy(&self) -> &OutboundPolicy {
        &self.settings.webhook_policy
    }

    /// Returns the secret that stays valid for some time beside a new one.
    async fn former_secret(&self, app: AppId, new: &str) -> ServiceResult<Option<FormerSecret>> {
        let present = match self.store.upstream_webhook(app).await {
            Ok(present) => present,
            // A webhook that cannot be decrypted cannot sign either.
            Err(StoreError::NotFound(_) | StoreError::Damaged(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let now = self.now();
        // Putting the same secret again is no change, and the former one keeps its end.
        if present.secret == new {
            return Ok(present.former.filter(|former| now < former.until));
        }
        Ok(Some(FormerSecret { secret: present.secret, until: now.plus(FORMER_SECRET_TTL) }))
    }

    /// Refuses an address with a literal host to which the server may not connect.
    fn check_webhook(&self, address: &Url) -> ServiceResult<()> {
        let host = address.host_str().unwrap_or_default();
        let Err(refused) = Outbound::new(self.settings.webhook_policy.clone()).check_host(host) else {
            return Ok(());
        };
        let allowance = refused.allowance();
        let hint = format!(
            "the operator of the server can allow it with upstream.webhook_networks = [\"{allowance}\"]"
        );
        Err(Problem::new(ErrorCode::AddressRefused, refused.to_string()).with_hint(hint).at("url"))
    }
}

fn address(url: &str) -> ServiceResult<Url> {
    let wrong = |problem: &str| Problem::field("url", problem.to_owned());
    if url.len() > WEBHOOK_URL_MAX_BYTES {
        return Err(wrong("is too long"));
    }
    // Checked before it is parsed: the parser skips spaces, tabs and extra slashes, and the address should be readable as it is meant.
    if !is_spelled_out(url) {
        return Err(wrong("must be an address such as https://app.example.org/hook"));
    }
    let address =
        Url::parse(url).map_err(|_| wrong("must be an address such as https://app.example.org/hook"))?;
    if !matches!(address.scheme(), "http" | "https") || address.host_str().is_none_or(str::is_empty) {
        return Err(wrong("must be an address such as https://app.example.org/hook"));
    }
    if !address.username().is_empty() || address.password().is_some() {
        return Err(wrong("must not hold a user or password: requests are signed with the secret"));
    }
    if address.fragment().is_some() {
        return Err(wrong("must not hold a fragment, which is never sent"));
    }
    Ok(address)
}

/// Returns true if an address has all its parts in their permitted characters (RFC 3986). The host is an IP address or a name that ends
/// like one. The description of the API states the same as a pattern, without IP addresses.
fn is_spelled_out(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return false;
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        // A colon within brackets belongs to an IPv6 address, not before a port.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_port = |port: &str| (1..=5).contains(&port.len()) && port.parse::<u16>().is_ok();
    path.bytes().all(is_path_byte) && port.is_none_or(is_port) && is_host(host)
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?@!$&'()*+,;=%".contains(&byte)
}

fn is_host(host: &str) -> bool {
    let six = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if six.is_some_and(|six| six.parse::<Ipv6Addr>().is_ok()) || host.parse::<Ipv4Addr>().is_ok() {
        return true;
    }
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    host.split('.').all(is_label) && last.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Returns the part of an address that may be shown, without its path and query, which may hold a secret.
fn origin(address: &Url) -> String {
    address.origin().ascii_serialization()
}

fn checked(secret: String) -> ServiceResult<String> {
    let bytes = webhook_key(&secret);
    if bytes.is_some_and(|bytes| SECRET_BYTES_RANGE.contains(&bytes.len())) {
        return Ok(secret);
    }
    Err(Problem::field("secret", "must be `whsec_` and 24 to 64 bytes in base64"))
}

/// Decodes the bytes of the secret that signs requests.
pub(crate) fn webhook_key(secret: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret.strip_prefix(SECRET_MARK)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_http_and_holds_no_user_and_no_fragment() {
        for good in ["https://app.example.org/hook?x=1", "http://127.0.0.1:8080", "http://[::1]/a"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "app.example.org",
            "ftp://a.example/",
            "https://me:pw@a.example/",
            "https://a.example/#x",
            "https:/a.example",
            "https:///a.example",
            " https://a.example",
            "https://a.example/a b",
            "https://a.example:/",
            "https://a.example:70000/",
            "https://a..example",
            "https://a*.example",
            "https://1.2.3",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
        assert!(address(&format!("https://a.example/{}", "x".repeat(WEBHOOK_URL_MAX_BYTES))).is_err());
    }

    #[test]
    fn a_secret_has_its_mark_and_enough_bytes_and_only_its_origin_is_told() {
        let secret = |count: usize| format!("whsec_{}", STANDARD.encode(vec![7; count]));
        assert!(checked(secret(24)).is_ok() && checked(secret(64)).is_ok());
        for bad in [secret(23), secret(65), secret(32).replace("whsec_", ""), "whsec_?".to_owned()] {
            assert!(checked(bad.clone()).is_err(), "{bad}");
        }
        assert_eq!(
            origin(&address("https://a.example:8443/t0p?x=secret").expect("one")),
            "https://a.example:8443"
        );
    }
}
