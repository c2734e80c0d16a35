//! The sizes of a lane's audiences, as far as this process knows them. They ensure that a small audience is never in flight as a whole.
//!
//! A campaign to a few thousand devices would fit into the window of any lane, and one crash would leave all of its deliveries in doubt. A
//! lane therefore has at most a sixteenth of its audiences unsettled, and a smaller part after a crash. Large audiences need no such limit:
//! the window of their lane is small compared to their size, and they need all of it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::campaign::Tally;
use stentor_core::device::ProviderKind;
use stentor_core::id::MessageId;
use tokio::time::Instant;

use super::provider_table::ProviderKey;

/// A lane may have one part in this many of its audiences unsettled.
const PART: u64 = 16;
/// The same after a crash.
const CAREFUL_PART: u64 = 128;
/// An audience of at least this size is large. The threshold is lower if a producer makes fewer deliveries in advance.
const LARGE_DEVICES: u64 = 24_000;
/// A campaign is ignored if none of its chunks was leased for this long.
const KEPT: Duration = Duration::from_secs(60);
/// Campaigns remembered per lane; the most recent ones are kept.
const CAMPAIGNS_MAX_COUNT: usize = 64;
/// Lanes remembered. A forgotten lane is learned again with its next chunk.
const LANES_MAX_COUNT: usize = 4_096;

/// The audiences of all lanes.
#[derive(Debug)]
pub(crate) struct Audiences {
    large: u64,
    lanes: Mutex<HashMap<ProviderKey, VecDeque<SeenAudience>>>,
}

/// The number of devices of a campaign that its producer has seen.
#[derive(Debug)]
struct SeenAudience {
    message: MessageId,
    devices: u64,
    noted: Instant,
}

impl Audiences {
    /// Creates an empty table. Producers make at most `ahead` deliveries of a campaign in advance.
    pub(crate) fn new(ahead: u64) -> Self {
        Self { large: LARGE_DEVICES.min(ahead), lanes: Mutex::default() }
    }

    /// Records that a campaign has at least `devices` devices in a lane.
    pub(crate) fn note(&self, lane: ProviderKey, message: MessageId, devices: u64) {
        let noted = Instant::now();
        let mut lanes = self.lock();
        if lanes.len() >= LANES_MAX_COUNT && !lanes.contains_key(&lane) {
            lanes.clear();
        }
        let audiences = lanes.entry(lane).or_default();
        if let Some(known) = audiences.iter_mut().find(|known| known.message == message) {
            known.devices = known.devices.max(devices);
            known.noted = noted;
            return;
        }
        if audiences.len() == CAMPAIGNS_MAX_COUNT {
            audiences.pop_front();
        }
        audiences.push_back(SeenAudience { message, devices, noted });
    }

    /// Returns the most deliveries that a lane should have unsettled. A value below the size of a chunk means one chunk.
    pub(crate) fn share(&self, lane: ProviderKey, is_careful: bool) -> u64 {
        if lane.1 == ProviderKind::Gateway {
            // Deliveries to our own devices are settled before they are handed over.
            return u64::MAX;
        }
        let lanes = self.lock();
        let audiences = lanes.get(&lane).into_iter().flatten();
        let devices = audiences.filter_map(SeenAudience::now).fold(0, u64::saturating_add);
        match is_careful {
            true => devices / CAREFUL_PART,
            false if devices >= self.large => u64::MAX,
            false => devices / PART,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProviderKey, VecDeque<SeenAudience>>> {
        self.lanes.lock()
    }
}

/// Returns the number of devices of a campaign according to its books. Saturates, because damaged books may hold any value.
pub(crate) fn size(books: &Tally) -> u64 {
    let Tally { queued, sending, accepted, rejected, expired, collapsed, canceled, failed } = *books;
    let counts = [queued, sending, accepted, rejected, expired, collapsed, canceled, failed];
    counts.into_iter().fold(0, u64::saturating_add)
}

impl SeenAudience {
    fn now(&self) -> Option<u64> {
        (self.noted.elapsed() < KEPT).then_some(self.devices)
    }
}

#[cfg(test)]
mod tests {
    use stentor_core::id::AppId;

    use super::*;

    const LANE: ProviderKey = (AppId::from_raw(1), ProviderKind::Fcm);

    fn message(number: u64) -> MessageId {
        MessageId::from_raw(number)
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_audience_is_in_flight_in_parts_and_a_large_one_as_its_window_says() {
        let audiences = Audiences::new(24_000);
        audiences.note(LANE, message(1), 10_000);
        assert_eq!((audiences.share(LANE, false), audiences.share(LANE, true)), (625, 78));
        audiences.note(LANE, message(1), 24_000);
        assert_eq!((audiences.share(LANE, false), audiences.share(LANE, true)), (u64::MAX, 187));
    }

    #[tokio::test(start_paused = true)]
    async fn many_small_campaigns_count_together_and_old_ones_no_more() {
        let audiences = Audiences::new(24_000);
        (1..=100).for_each(|number| audiences.note(LANE, message(number), 160));
        assert_eq!(audiences.share(LANE, false), 640);
        tokio::time::advance(KEPT).await;
        audiences.note(LANE, message(101), 320);
        assert_eq!(audiences.share(LANE, false), 20);
    }

    #[test]
    fn damaged_books_are_taken_for_those_of_a_large_audience() {
        let books = Tally { queued: u64::MAX, sending: 7, ..Tally::default() };
        assert_eq!((size(&books), size(&Tally { accepted: 3, ..Tally::default() })), (u64::MAX, 3));
        let audiences = Audiences::new(24_000);
        (1..3).for_each(|number| audiences.note(LANE, message(number), u64::MAX));
        assert_eq!(audiences.share(LANE, false), u64::MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_made_in_advance_tells_a_large_audience() {
        let audiences = Audiences::new(100);
        audiences.note(LANE, message(1), 100);
        assert_eq!(audiences.share(LANE, false), u64::MAX);
    }
}
