//! Conditions of callers, evaluated by the store inside the transaction of a change.

use serde::Serialize;
use stentor_core::ports::store::Precondition;

use crate::contract::{StateCondition, StateTag};

/// Turns a caller's condition on the view of a thing into a precondition on the stored thing.
pub(super) fn precondition<T, V>(condition: Option<StateCondition>, show: fn(T) -> V) -> Precondition<T>
where
    T: Clone + 'static,
    V: Serialize + 'static,
{
    let Some(condition) = condition else { return Precondition::none() };
    Precondition::new(move |present: Option<&T>| {
        let shown = present.map(|present| serde_json::to_vec(&show(present.clone()))).transpose();
        let shown = shown.inspect_err(|error| tracing::error!(%error, "a thing cannot be shown as JSON"));
        // A thing that cannot be serialized fulfils no condition, and nothing is changed.
        shown.is_ok_and(|json| condition.holds(json.as_deref().map(StateTag::of).as_ref()))
    })
}
