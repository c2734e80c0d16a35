//! Claims of a device that others could misuse, and the proof by its app's backend.

use stentor_core::app::Scope;
use stentor_core::name::{ExternalId, Tag, TopicName};

use super::accounts::{AccountAssertion, AssertionRefusal};
use super::devices::tags_of;
use super::{Caller, ErrorCode, Problem, Service, ServiceResult};

/// Audiences of a proof. The second is written by the libraries of app servers into a custom token that they make with an account's file.
const AUDIENCES: &[&str] = &[
    "stentor:device",
    "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit",
];
/// Hint for a claim without a proof.
const HINT: &str = "have the app's backend sign a proof with its account (docs/gateway.md, Whose device it is), or register the \
    device by a key with the scope `register`";

/// The user, tags and topics of a device, by which messages find it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceClaims {
    pub(crate) user: Option<ExternalId>,
    pub(crate) tags: Vec<Tag>,
    pub(crate) topics: Vec<TopicName>,
}

impl Service {
    /// Checks the claims of a device that registers, and returns them together with the claims of its proof. A key with the scope
    /// `register` needs no proof. A registration key that is part of an app proves nothing, because anyone can extract it.
    pub(crate) async fn proven_claims(
        &self,
        caller: Caller,
        claimed: DeviceClaims,
        proof: Option<&str>,
    ) -> ServiceResult<DeviceClaims> {
        let vouched = match proof {
            Some(proof) => self.read_proof(caller, proof).await?,
            None => DeviceClaims::default(),
        };
        if caller.require_any(&[Scope::Register]).is_err() {
            claimed.check(&vouched)?;
        }
        Ok(claimed.and(vouched))
    }

    async fn read_proof(&self, caller: Caller, proof: &str) -> ServiceResult<DeviceClaims> {
        let (account, said) = self.vouched(proof, AUDIENCES).await.map_err(|refusal| match refusal {
            AssertionRefusal::Invalid(why) => refused("proof", why),
            AssertionRefusal::Server(problem) => problem,
        })?;
        // An account without the scope to register devices cannot issue proofs, and no account can for devices of another app.
        if account.app != caller.app() || !account.scopes.allows(Scope::Register) {
            return Err(refused(
                "proof",
                "the account that signed it is not one of the app with the scope `register`",
            ));
        }
        DeviceClaims::of(said)
    }
}

impl DeviceClaims {
    fn of(said: AccountAssertion) -> ServiceResult<Self> {
        let vouchers = said.claims.unwrap_or_default();
        let topics: Result<_, _> = vouchers.topics.into_iter().map(TopicName::new).collect();
        Ok(Self {
            user: said.uid.map(ExternalId::new).transpose()?,
            tags: tags_of(vouchers.tags)?,
            topics: topics?,
        })
    }

    /// Refuses claims without proof.
    fn check(&self, vouched: &Self) -> ServiceResult<()> {
        if self.user.is_some() && self.user != vouched.user {
            return Err(refused("user", "a registration key does not prove the owner of a device"));
        }
        if self.tags.iter().any(|tag| !vouched.tags.contains(tag)) {
            return Err(refused("tags", "a registration key does not prove the tags of a device"));
        }
        let is_open = |topic: &&TopicName| !topic.is_private() || vouched.topics.contains(topic);
        match self.topics.iter().find(|topic| !is_open(topic)) {
            Some(_) => {
                Err(refused("topics", "a private topic is for devices that the app's backend subscribes"))
            }
            None => Ok(()),
        }
    }

    fn and(self, vouched: Self) -> Self {
        let mut both = Self { user: self.user.or(vouched.user), ..self };
        both.tags.extend(vouched.tags);
        both.topics.extend(vouched.topics);
        both.tags.sort();
        both.tags.dedup();
        both.topics.sort();
        both.topics.dedup();
        both
    }
}

fn refused(field: &'static str, why: &'static str) -> Problem {
    Problem::new(ErrorCode::Forbidden, why).at(field).with_hint(HINT)
}
