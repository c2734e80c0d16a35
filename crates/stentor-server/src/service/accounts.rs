//! Service accounts: their creation, and the exchange of signed assertions for access tokens (RFC 7523).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;
use stentor_core::account::IssuedAccount;
use stentor_core::app::{Scope, Scopes};
use stentor_core::audit::AuditAction;
use stentor_core::id::{AppId, KeyId};
use stentor_core::ports::store::{AccountFilter, Change};
use stentor_core::time::Timestamp;

use super::audit::{AuditSubject, Author};
use super::{ErrorCode, Identity, Origin, Problem, Service, ServiceResult};
use crate::contract::Serve;
use crate::contract::accounts::{
    NewServiceAccount, ServiceAccountList, ServiceAccountRequest, ServiceAccountView,
};
use crate::contract::table::{CreateServiceAccount, DeleteServiceAccount, ListServiceAccounts};
use crate::keys::{AccountKey, TOKEN_LIFE, TokenGrant, is_signed, key_id};

/// Path of the token endpoint.
const TOKEN_PATH: &str = "/token";
/// Longest address of this server.
const URL_MAX_BYTES: usize = 1_024;
/// Longest assertion; Google's are below 1 KiB.
const ASSERTION_MAX_BYTES: usize = 8_192;
/// Tolerated difference between the clocks of an app server and of this one.
const LEEWAY: Duration = Duration::from_secs(300);
/// Longest lifetime of an assertion.
const ASSERTION_LIFE_MAX: Duration = Duration::from_secs(3_600);
/// Default scopes of an account: an app server sends, and subscribes devices to topics.
const USUAL_SCOPES: &[Scope] = &[Scope::Send, Scope::Register];

/// The reason why an assertion gets no access token.
#[derive(Debug)]
pub(crate) enum AssertionRefusal {
    /// The assertion is invalid, for the given reason.
    Invalid(&'static str),
    /// The server cannot check it now.
    Server(Problem),
}

#[derive(Deserialize)]
struct AssertionHead {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
}

/// The claims of an assertion. Assertions for an access token and for a device have different audiences, and neither is accepted in place
/// of the other.
#[derive(Deserialize)]
pub(super) struct AccountAssertion {
    iss: String,
    aud: String,
    iat: i64,
    exp: i64,
    /// The user of the device.
    #[serde(default)]
    pub(super) uid: Option<String>,
    /// The other claims about the device.
    #[serde(default)]
    pub(super) claims: Option<DeviceVouchers>,
}

/// The claims of an app's backend about a device, besides its user.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DeviceVouchers {
    pub(super) tags: Vec<String>,
    pub(super) topics: Vec<String>,
}

/// A parsed assertion with an unverified signature.
struct SignedAssertion<'a> {
    head: AssertionHead,
    claims: AccountAssertion,
    signed: &'a str,
    signature: Vec<u8>,
}

impl Serve<CreateServiceAccount> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        app: AppId,
        ServiceAccountRequest { name, url, scopes }: ServiceAccountRequest,
    ) -> ServiceResult<NewServiceAccount> {
        let created_at = self.now();
        let id = KeyId::from_raw(self.next_id(created_at));
        let author = Author::of(&identity, from);
        let subject = AuditSubject::new(AuditAction::AccountCreate, app, id).with_detail(name.as_str());
        // Permission is checked first, because generating a key pair costs processor time.
        let app = self.administrated_by(&author, &subject, identity, app).await?;
        let (token_uri, scopes) = (token_uri(&url)?, scopes_of(&scopes)?);
        let AccountKey { private_pem, public } = new_key().await?;
        let account = IssuedAccount { id, app, name, scopes, public_key: public, token_uri, created_at };
        let file = file(&account, private_pem.expose_secret());
        self.change(author, subject, Change::CreateAccount(account.clone())).await?;
        Ok(NewServiceAccount::new(account, file))
    }
}

impl Serve<ListServiceAccounts> for Service {
    async fn serve(&self, identity: Identity, app: AppId, (): ()) -> ServiceResult<ServiceAccountList> {
        let app = self.administrated(identity, app).await?;
        let accounts = self.store.accounts(AccountFilter::App(app)).await?;
        Ok(ServiceAccountList {
            service_accounts: accounts.into_iter().map(ServiceAccountView::from).collect(),
        })
    }
}

impl Serve<DeleteServiceAccount> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        (app, account): (AppId, KeyId),
        (): (),
    ) -> ServiceResult<()> {
        let author = Author::of(&identity, from);
        let subject = AuditSubject::new(AuditAction::AccountDelete, app, account);
        let app = self.administrated_by(&author, &subject, identity, app).await?;
        self.change(author, subject, Change::DeleteAccount(app, account)).await?;
        // Its access tokens are not stored. They become invalid because the account is looked up again and not found.
        self.keyring.forget_account(account);
        Ok(())
    }
}

impl Service {
    /// Returns an access token for an assertion signed by an account. The assertion's audience is the account's own or one of `audiences`.
    pub(crate) async fn grant(
        &self,
        assertion: &str,
        audiences: &[&str],
    ) -> Result<String, AssertionRefusal> {
        let (account, claims) = self.signed_assertion(assertion).await?;
        // The assertion of a device, which its backend gave to it, must not grant the account's own access.
        if claims.uid.is_some()
            || (claims.aud != account.token_uri && !audiences.contains(&claims.aud.as_str()))
        {
            return Err(AssertionRefusal::Invalid("the audience must be the account's token_uri"));
        }
        let now = self.now();
        claims.check_times(now)?;
        let grant = TokenGrant { account: account.id, expires_at: now.plus(TOKEN_LIFE) };
        Ok(self.keyring.access_token(grant))
    }

    /// Returns the account that signed an assertion for one of these audiences, and its claims, if the assertion is within its lifetime.
    pub(super) async fn vouched(
        &self,
        assertion: &str,
        audiences: &[&str],
    ) -> Result<(IssuedAccount, AccountAssertion), AssertionRefusal> {
        let (account, claims) = self.signed_assertion(assertion).await?;
        if !audiences.contains(&claims.aud.as_str()) {
            return Err(AssertionRefusal::Invalid("aud must be \"stentor:device\""));
        }
        claims.check_times(self.now())?;
        Ok((account, claims))
    }

    async fn signed_assertion(
        &self,
        assertion: &str,
    ) -> Result<(IssuedAccount, AccountAssertion), AssertionRefusal> {
        let assertion = SignedAssertion::read(assertion)?;
        let account = match account_named(&assertion.claims.iss) {
            Some(id) => {
                self.keyring.account(self.store.as_ref(), id).await.map_err(AssertionRefusal::Server)?
            }
            None => None,
        };
        // The signature is verified before the times, so that a caller without the key learns nothing about the clock. An unknown account
        // and a wrong signature get the same text, so that guessing names reveals nothing.
        let account = account.filter(|account| assertion.is_of(account));
        let account = account.ok_or(AssertionRefusal::Invalid("Invalid JWT Signature."))?;
        Ok((account, assertion.claims))
    }

    /// Resolves an access token to its identity.
    pub(super) async fn token_identity(&self, token: &str) -> ServiceResult<Identity> {
        let known = self.keyring.token_grant(token).filter(|grant| grant.expires_at > self.now());
        let grant = known.ok_or_else(ended)?;
        self.keyring.account_identity(self.store.as_ref(), grant.account).await?.ok_or_else(ended)
    }
}

impl<'a> SignedAssertion<'a> {
    fn read(text: &'a str) -> Result<Self, AssertionRefusal> {
        if text.len() > ASSERTION_MAX_BYTES {
            return Err(AssertionRefusal::Invalid("the assertion is too long"));
        }
        let malformed = || AssertionRefusal::Invalid("the assertion is no JWT (RFC 7519)");
        let (signed, signature) = text.rsplit_once('.').ok_or_else(malformed)?;
        let (head, claims) = signed.split_once('.').ok_or_else(malformed)?;
        let head = part(head).ok_or_else(malformed)?;
        let claims =
            part(claims).ok_or(AssertionRefusal::Invalid("the assertion needs iss, aud, iat and exp"))?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed())?;
        Ok(Self { head, claims, signed, signature })
    }

    /// Returns true if the account signed it.
    fn is_of(&self, account: &IssuedAccount) -> bool {
        let key = &account.public_key;
        // The algorithm is fixed: an assertion that chooses its own could choose `none` (RFC 8725, section 3.1).
        self.head.alg == "RS256"
            && self.claims.iss == email(account.id, account.app)
            && self.head.kid.as_ref().is_none_or(|kid| *kid == key_id(key))
            && is_signed(key, self.signed.as_bytes(), &self.signature)
    }
}

impl AccountAssertion {
    fn check_times(&self, now: Timestamp) -> Result<(), AssertionRefusal> {
        let (now, leeway) = (now.as_millis() / 1_000, LEEWAY.as_secs().cast_signed());
        let life = ASSERTION_LIFE_MAX.as_secs().cast_signed();
        // Clocks of app servers differ, so both limits have a tolerance.
        if self.iat > now + leeway {
            return Err(AssertionRefusal::Invalid("iat is in the future: check the clocks"));
        }
        if self.exp <= now - leeway {
            return Err(AssertionRefusal::Invalid("the assertion has expired: check the clocks"));
        }
        if self.exp.saturating_sub(self.iat) > life {
            return Err(AssertionRefusal::Invalid("exp may be at most an hour after iat"));
        }
        Ok(())
    }
}

fn part<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

/// Generates a key pair on a blocking thread, because finding primes takes time.
async fn new_key() -> ServiceResult<AccountKey> {
    // A panicked thread is reported as an internal error, like a key that could not be generated.
    let made = tokio::task::spawn_blocking(AccountKey::generate).await.ok().flatten();
    made.ok_or_else(|| Problem::new(ErrorCode::Internal, "no key pair can be made"))
}

fn scopes_of(given: &[Scope]) -> ServiceResult<Scopes> {
    if given.contains(&Scope::Admin) {
        return Err(Problem::field("scopes", "a service account may have send and register"));
    }
    Ok(Scopes::of(if given.is_empty() { USUAL_SCOPES } else { given }))
}

fn token_uri(url: &str) -> ServiceResult<String> {
    let wrong = || Problem::field("url", "must be an address such as https://push.example.org");
    let origin = url.strip_suffix('/').unwrap_or(url);
    let host =
        origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://")).ok_or_else(wrong)?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if url.len() > URL_MAX_BYTES || host.is_empty() || !host.bytes().all(is_host) {
        return Err(wrong());
    }
    Ok(format!("{origin}{TOKEN_PATH}"))
}

/// Returns the name under which an account signs. It has the form of an email address, because clients expect one.
fn email(id: KeyId, app: AppId) -> String {
    format!("{id}@{app}.stentor.invalid")
}

fn account_named(email: &str) -> Option<KeyId> {
    email.split_once('@').and_then(|(id, _)| id.parse().ok())
}

/// Writes the key file of an account in Google's format.
fn file(account: &IssuedAccount, private_pem: &str) -> String {
    let origin = account.token_uri.trim_end_matches(TOKEN_PATH);
    let file = json!({
        "type": "service_account",
        "project_id": account.app,
        "private_key_id": key_id(&account.public_key),
        "private_key": private_pem,
        "client_email": email(account.id, account.app),
        "client_id": account.id.raw().to_string(),
        "auth_uri": format!("{origin}/o/oauth2/auth"),
        "token_uri": account.token_uri,
        "universe_domain": "googleapis.com",
    });
    format!("{file:#}")
}

fn ended() -> Problem {
    Problem::new(ErrorCode::Unauthorized, "the access token is unknown or has expired")
        .with_hint("get a new one from the service account's token_uri")
}
