//! Replacement of older messages by newer ones among those that wait for a device.

use std::collections::HashMap;
use std::sync::Arc;

use stentor_core::message::Message;

/// Returns for each message true if another of the list replaces it: one of the same app with the same collapse key and a later
/// [`Message::place`].
pub(crate) fn replaced(messages: &[Arc<Message>]) -> Vec<bool> {
    let key = |message: &Arc<Message>| message.spec.collapse_key.clone().map(|key| (message.app, key));
    let mut newest = HashMap::new();
    for message in messages {
        if let Some(key) = key(message) {
            let place = (message.place(), message.id);
            let newest_place = newest.entry(key).or_insert(place);
            *newest_place = place.max(*newest_place);
        }
    }
    let is_older = |message: &Arc<Message>| {
        let newest = key(message).and_then(|key| newest.get(&key).copied());
        newest.is_some_and(|newest| newest > (message.place(), message.id))
    };
    messages.iter().map(is_older).collect()
}
