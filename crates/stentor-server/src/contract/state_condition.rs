//! What a caller says that a thing must be, or must not be, for a change of it to be made.

use super::repeat::hash;

/// Bytes of a hash that stand in a tag.
const HASH_BYTES: usize = 16;

/// What tells one state of a thing from another: a hash of what is shown of it, written as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTag(String);

/// Tags of states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateTags {
    /// Of whatever state.
    Any,
    /// Of these.
    Some(Vec<String>),
}

/// What must hold of a thing for a change of it to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateCondition {
    /// It is there, in one of these states.
    pub one_of: Option<StateTags>,
    /// It is not there, or in none of these states.
    pub none_of: Option<StateTags>,
}

/// A change that may have a condition.
#[derive(Debug, Clone)]
pub struct Conditional<T> {
    /// What is asked.
    pub request: T,
    /// What must hold, if anything must.
    pub condition: Option<StateCondition>,
}

impl StateTag {
    /// Returns the tag of what is shown, written as JSON.
    #[must_use]
    pub fn of(json: &[u8]) -> Self {
        let hash = hash([json]);
        Self(hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns its text: hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl StateTags {
    /// Returns whether one of them is that of a state; nothing has no state.
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
    /// Returns whether it holds of a thing in this state, or of one that is not there.
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
