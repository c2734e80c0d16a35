//! Preconditions of changes.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::StoreError;

type StateRule<T> = dyn Fn(Option<&T>) -> bool + Send + Sync;

/// The precondition of a change. It is checked inside the transaction of the change, against the current thing, or against `None` if it
/// does not exist.
pub struct Precondition<T>(Option<Arc<StateRule<T>>>);

impl<T> Precondition<T> {
    /// Returns a precondition that always holds.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Returns a precondition that holds if `rule` returns true.
    #[must_use]
    pub fn new(rule: impl Fn(Option<&T>) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(rule)))
    }

    /// Fails if the precondition does not hold for the result of `read`; an empty precondition reads nothing.
    pub fn check<E: From<StoreError>>(&self, read: impl FnOnce() -> Result<Option<T>, E>) -> Result<(), E> {
        let Some(rule) = &self.0 else { return Ok(()) };
        if rule(read()?.as_ref()) { Ok(()) } else { Err(StoreError::PreconditionFailed.into()) }
    }
}

impl<T> Clone for Precondition<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Debug for Precondition<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Precondition" } else { "Precondition::none" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_asked_about_and_nothing_is_read_without_a_rule() {
        let is_one = Precondition::new(|thing: Option<&u32>| thing == Some(&1));
        let checked = |thing| is_one.check(|| Ok::<_, StoreError>(thing));
        assert_eq!(checked(Some(1)), Ok(()));
        assert_eq!(checked(Some(2)), Err(StoreError::PreconditionFailed));
        assert_eq!(checked(None), Err(StoreError::PreconditionFailed));
        let unread = || Err(StoreError::Unavailable("read".to_owned()));
        assert_eq!(Precondition::<u32>::none().check(unread), Ok(()));
        assert_eq!(is_one.check(unread), Err(StoreError::Unavailable("read".to_owned())));
    }
}
