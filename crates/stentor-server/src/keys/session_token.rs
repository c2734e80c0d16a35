//! Session tokens of the console: holder, session and expiry, authenticated by a MAC that only this installation can compute.
//!
//! Open sessions need no table, so every server of an installation knows them, also after a restart; the store knows those that ended
//! before their time. A token names a key by the key's hash: once the key is gone, the hash finds none. A person is in the token with the
//! roles, and with a number that changes with the settings of the login.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use stentor_core::time::Timestamp;
use subtle::ConstantTimeEq;

use super::{KeyHash, Pepper};
use crate::contract::role::PersonInRoles;

const PREFIX: &str = "ses_";
const PURPOSE: &str = "stentor 2026 sessions of the console";
const PERSON_PREFIX: &str = "psn_";
const PERSON_PURPOSE: &str = "stentor 2026 sessions of persons in the console";
const CSRF_PURPOSE: &str = "stentor 2026 csrf tokens of the console";
const CODE_BYTES: usize = 32;
/// Bytes of the session's number and expiry, which end the claims.
const NUMBERS_BYTES: usize = 8 + 8;

/// The content of a session token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionGrant {
    /// The holder of the session.
    pub holder: SessionHolder,
    /// Random number of the session.
    pub session: u64,
    /// The time of expiry.
    pub expires_at: Timestamp,
}

/// The holder of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionHolder {
    /// The key with this hash, with which the session was opened.
    Key(KeyHash),
    /// A person whom the identity provider named.
    Person(PersonGrant),
}

/// A person as a session token holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonGrant {
    /// The person and the roles.
    pub who: PersonInRoles,
    /// Number of the settings under which the person logged in.
    pub settings: u64,
}

impl Pepper {
    /// Creates a session token.
    #[must_use]
    pub fn session_token(&self, grant: &SessionGrant) -> String {
        let claims = grant.bytes();
        let (prefix, purpose) = grant.form();
        let bytes = [claims.as_slice(), &self.code_for(purpose, &claims)].concat();
        format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Verifies and parses a session token of this installation; does not check its expiry.
    #[must_use]
    pub fn session_grant(&self, text: &str) -> Option<SessionGrant> {
        let (encoded, purpose) = match text.strip_prefix(PERSON_PREFIX) {
            Some(encoded) => (encoded, PERSON_PURPOSE),
            None => (text.strip_prefix(PREFIX)?, PURPOSE),
        };
        let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let (claims, code) = bytes.split_last_chunk::<CODE_BYTES>()?;
        let is_ours: bool = self.code_for(purpose, claims).ct_eq(code).into();
        if is_ours { SessionGrant::of(claims, purpose == PERSON_PURPOSE) } else { None }
    }

    /// Returns the text that a page sends with each change, to prove that it can read what this server answers.
    #[must_use]
    pub fn csrf_token(&self, grant: &SessionGrant) -> String {
        URL_SAFE_NO_PAD.encode(self.code_for(CSRF_PURPOSE, &grant.bytes()))
    }

    /// Compares in constant time.
    #[must_use]
    pub fn is_csrf_token(&self, grant: &SessionGrant, text: &str) -> bool {
        self.csrf_token(grant).as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// Computes the MAC of claims for one purpose.
    pub(super) fn code_for(&self, purpose: &str, claims: &[u8]) -> [u8; CODE_BYTES] {
        *blake3::keyed_hash(&blake3::derive_key(purpose, &self.0), claims).as_bytes()
    }
}

impl SessionGrant {
    const fn form(&self) -> (&'static str, &'static str) {
        match self.holder {
            SessionHolder::Key(_) => (PREFIX, PURPOSE),
            SessionHolder::Person(_) => (PERSON_PREFIX, PERSON_PURPOSE),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = match &self.holder {
            SessionHolder::Key(hash) => hash.to_vec(),
            // Its maps have texts as keys, so this cannot fail.
            SessionHolder::Person(person) => serde_json::to_vec(person).unwrap_or_default(),
        };
        bytes.extend(self.session.to_be_bytes());
        bytes.extend(self.expires_at.as_millis().to_be_bytes());
        bytes
    }

    fn of(claims: &[u8], is_person: bool) -> Option<Self> {
        let (holder, numbers) = claims.split_last_chunk::<NUMBERS_BYTES>()?;
        let (session, expiry) = numbers.split_first_chunk::<8>()?;
        let expires_at = Timestamp::from_millis(i64::from_be_bytes(*expiry.first_chunk()?));
        let holder = match is_person {
            true => SessionHolder::Person(serde_json::from_slice(holder).ok()?),
            false => SessionHolder::Key(holder.try_into().ok()?),
        };
        Some(Self { holder, session: u64::from_be_bytes(*session), expires_at })
    }
}

#[cfg(test)]
mod tests {
    use stentor_core::person::Person;

    use super::*;
    use crate::contract::role::Roles;

    fn of_key(session: u64) -> SessionGrant {
        let expires_at = Timestamp::from_millis(1_700_000_000_123);
        SessionGrant { holder: SessionHolder::Key([7; 32]), session, expires_at }
    }

    fn of_person(subject: &str) -> SessionGrant {
        let roles = ["*:viewer", "app_0000000000001:admin"].map(|text| text.parse().expect(text));
        let person = Person::new(subject, "Ada").expect("a person");
        let who = PersonInRoles { person, roles: Roles::of(roles).expect("roles") };
        SessionGrant { holder: SessionHolder::Person(PersonGrant { who, settings: 9 }), ..of_key(77) }
    }

    #[test]
    fn a_session_token_is_read_where_it_was_written_and_nowhere_else() {
        let (here, there) = (Pepper([1; 32]), Pepper([2; 32]));
        for grant in [of_key(77), of_person("248289")] {
            let token = here.session_token(&grant);
            assert_eq!((here.session_grant(&token), there.session_grant(&token)), (Some(grant), None));
            for at in PREFIX.len()..token.len() {
                let other = if token.as_bytes()[at] == b'A' { 'B' } else { 'A' };
                let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
                assert_eq!(here.session_grant(&changed), None, "letter {at}");
            }
            assert_eq!(here.session_grant(&token[..token.len() - 4]), None);
        }
    }

    #[test]
    fn the_session_of_a_person_is_none_of_a_key_and_fits_into_a_cookie() {
        let here = Pepper([1; 32]);
        let token = here.session_token(&of_person("248289"));
        let renamed = token.replacen(PERSON_PREFIX, PREFIX, 1);
        assert_eq!(here.session_grant(&renamed), None);
        let subject = "\"".repeat(255);
        let roles =
            (1..=32).map(|app| format!("{}:operator", stentor_core::id::AppId::from_raw(u64::MAX - app)));
        let roles = Roles::of(roles.map(|text| text.parse().expect("a role"))).expect("roles");
        let person = Person::new(&subject, &"\u{10ffff}".repeat(64)).expect("a person");
        let who = PersonInRoles { person, roles };
        let holder = SessionHolder::Person(PersonGrant { who, settings: u64::MAX });
        let largest = here.session_token(&SessionGrant { holder, ..of_key(u64::MAX) });
        // Browsers keep cookies of 4,096 bytes.
        assert!(largest.len() < 3_900, "{}", largest.len());
    }

    #[test]
    fn the_csrf_token_of_one_session_is_none_of_another_and_is_no_session_token() {
        let here = Pepper([1; 32]);
        for (mine, other) in [(of_key(77), of_key(78)), (of_person("1"), of_person("2"))] {
            let token = here.csrf_token(&mine);
            assert!(here.is_csrf_token(&mine, &token));
            assert!(!here.is_csrf_token(&other, &token));
            assert!(!here.is_csrf_token(&mine, ""));
            assert_eq!(here.session_grant(&token), None);
        }
    }
}
