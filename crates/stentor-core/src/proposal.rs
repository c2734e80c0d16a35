//! Proposals: messages that somebody wants to send, and that somebody else has to approve.

use std::time::Duration;

use crate::audit::Actor;
use crate::id::{AppId, MessageId, ProposalId};
use crate::message::MessageSpec;
use crate::time::Timestamp;

/// Time after which a proposal has expired: three days.
pub const PROPOSAL_LIFE: Duration = Duration::from_secs(3 * 24 * 3_600);

/// A message that waits for an approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Its id.
    pub id: ProposalId,
    /// The owning app.
    pub app: AppId,
    /// The one who wants to send it.
    pub author: Actor,
    /// The message.
    pub spec: MessageSpec,
    /// The requested due time; `None` for the time of the approval.
    pub send_at: Option<Timestamp>,
    /// True if the message must be due exactly at its due time.
    pub exact: bool,
    /// Number of devices of its audience when it was made.
    pub device_count: u64,
    /// Time of creation.
    pub created_at: Timestamp,
    /// It cannot be approved from this instant on.
    pub expires_at: Timestamp,
    /// The message that its approval sent.
    pub message: Option<MessageId>,
}

impl Proposal {
    /// Returns true if `approver` is somebody else than the author. A person is the same under any name.
    #[must_use]
    pub fn may_be_approved_by(&self, approver: &Actor) -> bool {
        match (&self.author, approver) {
            (Actor::Person(author), Actor::Person(approver)) => author.subject() != approver.subject(),
            (author, approver) => author != approver,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::KeyId;
    use crate::message::{Content, Priority, Ttl};
    use crate::person::Person;
    use crate::target::Target;

    fn proposed_by(author: Actor) -> Proposal {
        Proposal {
            id: ProposalId::from_raw(1),
            app: AppId::from_raw(2),
            author,
            spec: MessageSpec {
                target: Target::Everyone,
                content: Content::default(),
                priority: Priority::default(),
                ttl: Ttl::default(),
                collapse_key: None,
            },
            send_at: None,
            exact: false,
            device_count: 5_000,
            created_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(9),
            message: None,
        }
    }

    #[test]
    fn everybody_but_the_author_may_approve_a_proposal_and_another_name_is_no_other_person() {
        let person = |subject: &str, name: &str| Actor::Person(Person::new(subject, name).expect("a person"));
        let by_ada = proposed_by(person("1", "Ada"));
        assert!(!by_ada.may_be_approved_by(&person("1", "Bob")));
        assert!(by_ada.may_be_approved_by(&person("2", "Ada")));
        assert!(by_ada.may_be_approved_by(&Actor::Root));
        let key = |id| Actor::Key(KeyId::from_raw(id));
        let by_key = proposed_by(key(1));
        assert!(!by_key.may_be_approved_by(&key(1)));
        assert!(by_key.may_be_approved_by(&key(2)) && by_key.may_be_approved_by(&person("1", "Ada")));
    }
}
