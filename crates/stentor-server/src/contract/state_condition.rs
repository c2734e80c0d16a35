//! Preconditions of a change: the state that an object must or must not have.

use super::repeat::hash;

/// Bytes of the hash in a tag.
const HASH_BYTES: usize = 16;

/// Tag of an object's state: a hash of its JSON representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTag(String);

/// A set of state tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateTags {
    /// Any state.
    Any,
    /// One of these tags.
    Some(Vec<String>),
}

/// Precondition of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateCondition {
    /// The object exists, in one of these states.
    pub one_of: Option<StateTags>,
    /// The object does not exist, or is in none of these states.
    pub none_of: Option<StateTags>,
}

/// A change with an optional precondition.
#[derive(Debug, Clone)]
pub struct Conditional<T> {
    /// The request.
    pub request: T,
    /// The precondition, if any.
    pub condition: Option<StateCondition>,
}

impl StateTag {
    /// Returns the tag of a JSON representation.
    #[must_use]
    pub fn of(json: &[u8]) -> Self {
        let hash = hash([json]);
        Self(hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the tag as hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl StateTags {
    /// Returns true if the set contains the state; false if the object does not exist.
    #[must_use]
    pub fn have(&self, state: Option<&StateTag>) -> bool {
        match (self, state) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::Some(tags), Some(state)) => tags.iter().any(|tag| tag == state.as_str()),
        }
    }
}

impl StateCondition {
    /// Returns true if the precondition holds for this state; `None` stands for an object that does not exist.
    #[must_use]
    pub fn holds(&self, state: Option<&StateTag>) -> bool {
        self.one_of.as_ref().is_none_or(|tags| tags.have(state))
            && !self.none_of.as_ref().is_some_and(|tags| tags.have(state))
    }
}

impl<T> From<T> for Conditional<T> {
    fn from(request: T) -> Self {
        Self { request, condition: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(tags: &[&StateTag]) -> Option<StateTags> {
        Some(StateTags::Some(tags.iter().map(|tag| tag.as_str().to_owned()).collect()))
    }

    #[test]
    fn a_change_goes_on_where_the_thing_is_as_it_must_be() {
        let (now, before) = (StateTag::of(b"{}"), StateTag::of(b"[]"));
        let must_be = |one_of| StateCondition { one_of, none_of: None };
        assert!(must_be(some(&[&before, &now])).holds(Some(&now)));
        assert!(must_be(Some(StateTags::Any)).holds(Some(&now)));
        assert!(!must_be(some(&[&before])).holds(Some(&now)));
        assert!(!must_be(Some(StateTags::Any)).holds(None));
        assert!(must_be(None).holds(None));
    }

    #[test]
    fn what_must_not_be_there_is_refused_when_it_is() {
        let (now, before) = (StateTag::of(b"{}"), StateTag::of(b"[]"));
        let must_not_be = |none_of| StateCondition { one_of: None, none_of };
        assert!(must_not_be(Some(StateTags::Any)).holds(None));
        assert!(!must_not_be(Some(StateTags::Any)).holds(Some(&now)));
        assert!(!must_not_be(some(&[&now])).holds(Some(&now)));
        assert!(must_not_be(some(&[&before])).holds(Some(&now)));
    }
}
