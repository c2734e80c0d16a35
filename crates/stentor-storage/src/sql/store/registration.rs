//! A batch of registrations, and the devices that are known already.

use std::collections::HashMap;
use std::sync::LazyLock;

use stentor_core::device::{DEVICE_TEXTS_COUNT, Platform, ProviderKind, PushToken, Registration};
use stentor_core::id::AppId;
use stentor_core::time::Timestamp;

use super::device_texts;
use super::tags::join_tags;
use crate::sql::{Connection, Done, Row, Value, params, run};

/// The columns of a [`KnownDevice`].
pub(crate) static KNOWN_COLUMNS: LazyLock<String> = LazyLock::new(|| {
    let texts = device_texts::list(|name| format!("d.{name}"));
    format!("d.key, d.platform, d.listed, d.retired_at IS NULL, d.owner, d.token_since, d.tags, {texts}")
});
/// The first text among these columns.
const FIRST_TEXT: usize = 7;
/// The number of these columns.
pub(crate) const KNOWN_COLUMNS_COUNT: usize = FIRST_TEXT + DEVICE_TEXTS_COUNT;

/// Hashes a token of an app at a provider.
pub(crate) fn token_hash(app: AppId, provider: ProviderKind, token: &PushToken) -> i64 {
    let text = token.expose().as_bytes();
    let mut bytes = Vec::with_capacity(9 + text.len());
    bytes.extend_from_slice(&app.raw().to_le_bytes());
    bytes.push(provider.code());
    bytes.extend_from_slice(text);
    let digest = blake3::hash(&bytes);
    digest.as_bytes().first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
}

/// Registrations with everything that is prepared outside the transaction.
pub(crate) struct RegistrationBatch {
    pub(crate) app: AppId,
    pub(crate) given: Vec<Registration>,
    pub(crate) hashes: Vec<i64>,
    /// Positions in order of hash; equal tokens keep the caller's order.
    pub(crate) by_hash: Vec<usize>,
    /// Hashes of former tokens with the positions of their registrations, in order.
    formers: Vec<(i64, usize)>,
    pub(crate) now: Timestamp,
}

/// A token of a batch whose holder is looked up.
pub(crate) struct WantedToken<'a> {
    pub(crate) hash: i64,
    /// The position of the registration that names it.
    pub(crate) at: usize,
    pub(crate) token: &'a PushToken,
}

/// The state of a registration's token in the store.
pub(crate) enum TokenMatch {
    /// No device holds it.
    New,
    /// A device holds it.
    Known(Box<KnownDevice>),
    /// An earlier registration of the batch has the same token.
    Repeats(usize),
}

/// The columns of a known device that a repeated registration may change.
#[derive(Clone)]
pub(crate) struct KnownDevice {
    pub(crate) key: i64,
    pub(crate) active: bool,
    pub(crate) user: Option<i64>,
    pub(crate) tags: Option<String>,
    pub(crate) token_since: i64,
    platform: u8,
    texts: [Option<String>; DEVICE_TEXTS_COUNT],
}

impl RegistrationBatch {
    /// Takes the first registrations that do not depend on each other's former tokens. Hashes the tokens with the engine's `hash`, and sorts.
    pub(crate) fn new(
        app: AppId,
        registrations: &[Registration],
        now: Timestamp,
        hash: fn(AppId, ProviderKind, &PushToken) -> i64,
    ) -> Self {
        let given = registrations[..independent(registrations)].to_vec();
        let hashes: Vec<i64> = given.iter().map(|one| hash(app, one.provider, &one.token)).collect();
        let mut by_hash: Vec<usize> = (0..given.len()).collect();
        by_hash.sort_by_key(|at| hashes[*at]);
        let former = |(at, one): (usize, &Registration)| Some((hash(app, one.provider, one.replaces()?), at));
        let mut formers: Vec<_> = given.iter().enumerate().filter_map(former).collect();
        formers.sort_unstable();
        Self { app, given, hashes, by_hash, formers, now }
    }

    /// Lists the tokens that no earlier registration of the batch has, in order of hash. The others get the device of the earlier one.
    pub(crate) fn wanted(&self, found: &[TokenMatch]) -> Vec<WantedToken<'_>> {
        let firsts = self.by_hash.iter().filter(|at| matches!(found[**at], TokenMatch::New));
        let wanted =
            |at: &usize| WantedToken { hash: self.hashes[*at], at: *at, token: &self.given[*at].token };
        firsts.map(wanted).collect()
    }

    /// Lists the former tokens, in order of hash.
    pub(crate) fn wanted_formers(&self) -> Vec<WantedToken<'_>> {
        let wanted = |(hash, at): &(i64, usize)| {
            Some(WantedToken { hash: *hash, at: *at, token: self.given[*at].replaces()? })
        };
        self.formers.iter().filter_map(wanted).collect()
    }

    /// Finds the registrations that repeat the token of an earlier one in the batch.
    pub(crate) fn repeats(&self) -> Vec<TokenMatch> {
        let mut found: Vec<TokenMatch> = self.given.iter().map(|_| TokenMatch::New).collect();
        for same in self.by_hash.chunk_by(|a, b| self.hashes[*a] == self.hashes[*b]) {
            for (index, at) in same.iter().enumerate() {
                let one = &self.given[*at];
                let earlier = same[..index].iter().find(|earlier| {
                    let earlier = &self.given[**earlier];
                    earlier.provider == one.provider && earlier.token == one.token
                });
                if let Some(earlier) = earlier {
                    found[*at] = TokenMatch::Repeats(*earlier);
                }
            }
        }
        found
    }
}

/// Returns the number of first registrations of which none names a former token that another one names, as its own or as its former one.
/// What the others lead to is only known when these are done. At least one, if there is any.
fn independent(registrations: &[Registration]) -> usize {
    // With each token, whether a registration with a former token names it.
    let mut named: HashMap<(ProviderKind, &PushToken), bool> = HashMap::new();
    if registrations.iter().all(|one| one.replaces().is_none()) {
        return registrations.len();
    }
    for (at, one) in registrations.iter().enumerate() {
        let tokens = [Some(&one.token), one.replaces()];
        let moves = one.replaces().is_some();
        for token in tokens.into_iter().flatten() {
            let before = named.insert((one.provider, token), moves);
            if before.is_some_and(|moved| moved || moves) {
                return at.max(1);
            }
        }
    }
    registrations.len()
}

/// The columns of a known device after a registration.
pub(crate) struct RenewedDevice<'a> {
    pub(crate) tags: Option<String>,
    texts: [Option<&'a str>; DEVICE_TEXTS_COUNT],
}

impl KnownDevice {
    /// Reads the columns of [`KNOWN_COLUMNS`].
    pub(crate) fn read(row: &Row<'_>) -> Done<Self> {
        let (listed, unretired): (bool, bool) = (row.get(2)?, row.get(3)?);
        Ok(Self {
            key: row.get(0)?,
            platform: row.get(1)?,
            active: listed && unretired,
            user: row.get(4)?,
            token_since: row.get(5)?,
            tags: row.get(6)?,
            texts: device_texts::read(row, FIRST_TEXT)?,
        })
    }

    /// Returns this device with the facts of another one where it has none.
    pub(crate) fn with_facts_of(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.user = both.user.or(other.user);
        both.tags = both.tags.or_else(|| other.tags.clone());
        for (text, others) in both.texts.iter_mut().zip(&other.texts) {
            *text = text.take().or_else(|| others.clone());
        }
        both
    }

    /// Returns the columns after a registration: values absent from it stay as they were.
    pub(crate) fn renewed<'a>(&'a self, one: &'a Registration) -> RenewedDevice<'a> {
        let mut texts = one.facts.texts();
        for (text, kept) in texts.iter_mut().zip(&self.texts) {
            *text = text.or(kept.as_deref());
        }
        RenewedDevice { tags: join_tags(&one.facts.tags).or_else(|| self.tags.clone()), texts }
    }

    /// Returns true if a registration changes more than `token_since`.
    pub(crate) fn differs(&self, one: &Registration, user: Option<i64>) -> bool {
        let mut texts = one.facts.texts().into_iter().zip(&self.texts);
        !self.active
            || self.platform != one.platform.code()
            || self.user != user
            || texts.any(|(given, kept)| given.is_some() && given != kept.as_deref())
            || !one.facts.tags.is_empty() && self.tags != join_tags(&one.facts.tags)
    }
}

impl RenewedDevice<'_> {
    /// Writes the columns, and revives the device.
    pub(crate) fn write(
        &self,
        connection: &Connection,
        key: i64,
        platform: Platform,
        user: Option<i64>,
        now: Timestamp,
    ) -> Done<()> {
        static SQL: LazyLock<String> = LazyLock::new(|| {
            let mut place = 5;
            let texts = device_texts::list(|name| {
                place += 1;
                format!("{name} = ?{place}")
            });
            format!(
                "UPDATE devices SET token_since = ?2, platform = ?3, listed = TRUE, retired_at = NULL,
                retired_reason = NULL, owner = ?4, tags = ?5, {texts} WHERE key = ?1"
            )
        });
        let tags = self.tags.as_deref();
        let mut values = Vec::from(params![key, now.as_millis(), platform.code(), user, tags]);
        values.extend(self.texts.iter().map(|text| Value::from(*text)));
        run(connection, &SQL, values).map(drop)
    }
}
