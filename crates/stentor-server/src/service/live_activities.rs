//! The order of the updates of a Live Activity.
//!
//! A phone shows the update with the latest timestamp, in whole seconds, in whatever order updates arrive. So each update of an activity gets
//! a later timestamp than the one before, also within a second, and replaces all older ones that have not been sent.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Content, MessageSpec};
use stentor_core::name::CollapseKey;
use stentor_core::time::Timestamp;

use super::{Service, ServiceResult};

/// Activities whose last timestamp is remembered. If there are more, all are read from the store again.
const REMEMBERED_MAX_COUNT: usize = 100_000;
/// Keys of activities begin with this.
const KEY_PREFIX: &str = "live_activity:";

/// The last timestamps of activities.
#[derive(Default)]
pub(super) struct ActivityClocks {
    last: Mutex<HashMap<(AppId, CollapseKey), i64>>,
}

impl ActivityClocks {
    fn last(&self, app: AppId, key: &CollapseKey) -> Option<i64> {
        self.last.lock().get(&(app, key.clone())).copied()
    }

    /// Gives an update its timestamp: the given one, or the current second, or the one after the last. `number` is called while no other
    /// update gets its timestamp, so that ids and timestamps have the same order. Returns `None` if the given timestamp is not later than the
    /// last.
    fn next<T>(
        &self,
        (app, key): (AppId, CollapseKey),
        (given, stored, now_s): (Option<i64>, i64, i64),
        number: impl FnOnce() -> T,
    ) -> Option<(i64, T)> {
        let mut last = self.last.lock();
        let before = last.get(&(app, key.clone())).copied().unwrap_or_default().max(stored);
        let timestamp = given.unwrap_or(now_s.max(before.saturating_add(1)));
        if timestamp <= before {
            return None;
        }
        if last.len() >= REMEMBERED_MAX_COUNT {
            last.clear();
        }
        last.insert((app, key), timestamp);
        Some((timestamp, number()))
    }
}

/// Returns the key of the activity that a message updates or ends. Its newer messages replace the older ones.
fn key_of(content: &Content) -> Result<Option<CollapseKey>, Invalid> {
    let fields = content.overrides.get(&ProviderKind::LiveActivity);
    let name = fields.and_then(|fields| fields.get("activity")).and_then(Value::as_str);
    name.map(|name| CollapseKey::new(format!("{KEY_PREFIX}{name}"))).transpose()
}

/// Refuses what would break the order of updates: another key, or a later time.
pub(super) fn check_order(spec: &MessageSpec, is_later: bool) -> Result<(), Invalid> {
    if key_of(&spec.content)?.is_none() {
        return Ok(());
    }
    if spec.collapse_key.is_some() {
        return Err(Invalid::new("collapse_key", "`live_activity.activity` takes its place"));
    }
    if is_later {
        return Err(Invalid::new("live_activity.event", "only a `start` can be sent later"));
    }
    Ok(())
}

impl Service {
    /// Gives a message its id, and an update of a Live Activity its place in the order of the activity.
    pub(super) async fn number(
        &self,
        app: AppId,
        spec: &mut MessageSpec,
        now: Timestamp,
    ) -> ServiceResult<MessageId> {
        let number = || MessageId::from_raw(self.next_id(now));
        let Some(key) = key_of(&spec.content)? else { return Ok(number()) };
        let stored = match self.activities.last(app, &key) {
            // Other servers may have updated the activity since.
            Some(last) if !self.settings.is_shared => last,
            _ => self.stored_timestamp(app, &key).await?,
        };
        let fields = spec.content.overrides.entry(ProviderKind::LiveActivity).or_default();
        let given = fields.get("timestamp").and_then(Value::as_i64);
        let times = (given, stored, now.as_millis() / 1_000);
        let next = self.activities.next((app, key.clone()), times, number);
        let (timestamp, id) = next.ok_or_else(|| {
            Invalid::new("live_activity.timestamp", "must be later than that of the update before")
        })?;
        fields.insert("timestamp".to_owned(), timestamp.into());
        spec.collapse_key = Some(key);
        Ok(id)
    }

    /// Reads the timestamp of the last update of an activity; 0 if there is none.
    async fn stored_timestamp(&self, app: AppId, key: &CollapseKey) -> ServiceResult<i64> {
        let Some(id) = self.store.newest_with_key(app, key).await? else { return Ok(0) };
        let newest = self.store.message(app, id).await?;
        let fields = newest.spec.content.overrides.get(&ProviderKind::LiveActivity);
        Ok(fields.and_then(|fields| fields.get("timestamp")).and_then(Value::as_i64).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_within_a_second_get_later_timestamps_and_a_given_one_must_be_later_too() {
        let (clocks, key) = (ActivityClocks::default(), CollapseKey::new("game".to_owned()).expect("a key"));
        let app = AppId::from_raw(1);
        let next = |given, stored, now| {
            clocks.next((app, key.clone()), (given, stored, now), || ()).map(|(timestamp, ())| timestamp)
        };
        assert_eq!(
            (next(None, 0, 100), next(None, 0, 100), next(None, 0, 100)),
            (Some(100), Some(101), Some(102))
        );
        assert_eq!(next(None, 0, 90), Some(103), "the clock went back");
        assert_eq!((next(Some(103), 0, 104), next(Some(110), 0, 104)), (None, Some(110)));
        assert_eq!(next(None, 120, 104), Some(121), "another server was ahead");
    }
}
