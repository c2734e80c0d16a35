//! Messages that wait for an approval: requests and replies.

use serde::{Deserialize, Serialize};
use stentor_core::audit::Actor;
use stentor_core::id::{KeyId, MessageId, ProposalId};
use stentor_core::proposal::Proposal;
use utoipa::ToSchema;

use super::Instant;
use super::messages::{MessageRequest, SpecView};

/// A message that somebody else has to approve.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposalRequest {
    /// The message, without `dry_run`.
    pub message: MessageRequest,
}

/// A message that waits for an approval.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Proposal)]
pub struct ProposalView {
    #[schema(value_type = String)]
    pub(crate) id: ProposalId,
    /// Author: `root`, `key` or `person`.
    pub(crate) by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) key: Option<KeyId>,
    /// The subject of the person at the identity provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) person: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) person_name: Option<String>,
    pub(crate) message: SpecView,
    /// The requested time; the time of the approval when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) send_at: Option<Instant>,
    pub(crate) exact: bool,
    /// Number of devices of the audience when the proposal was made.
    pub(crate) device_count: u64,
    pub(crate) created_at: Instant,
    /// It cannot be approved from this instant on.
    pub(crate) expires_at: Instant,
    /// The message that the approval sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) sent: Option<MessageId>,
}

/// A page of the messages that wait for an approval.
#[derive(Serialize, ToSchema)]
pub struct ProposalList {
    pub(crate) proposals: Vec<ProposalView>,
    /// Proposals that cannot be read, in the same order; absent if there are none. They can be deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) damaged: Vec<ProposalId>,
    /// Cursor of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl From<Proposal> for ProposalView {
    fn from(proposal: Proposal) -> Self {
        let (by, key, person) = match proposal.author {
            Actor::Root => ("root", None, None),
            Actor::Key(key) => ("key", Some(key), None),
            Actor::Person(person) => ("person", None, Some(person)),
        };
        Self {
            id: proposal.id,
            by,
            key,
            person: person.as_ref().map(|person| person.subject().to_owned()),
            person_name: person.map(|person| person.name().to_owned()),
            message: proposal.spec.into(),
            send_at: proposal.send_at.map(Instant),
            exact: proposal.exact,
            device_count: proposal.device_count,
            created_at: proposal.created_at.into(),
            expires_at: proposal.expires_at.into(),
            sent: proposal.message,
        }
    }
}
