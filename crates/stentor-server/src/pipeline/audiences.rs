//! The sizes of a lane's audiences, as far as this process knows them: a small one is never in flight as a whole.
//!
//! A campaign to a few thousand devices would fit into the window of any lane, and one crash would leave all of it in doubt. So a
//! lane has at most a sixteenth of its audiences unsettled, and behind a crash a smaller part. Those that are large need no such
//! bound: the window of their lane is small beside them, and they are the ones of which every part counts.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::campaign::Tally;
use stentor_core::device::ProviderKind;
use stentor_core::id::MessageId;
use tokio::time::Instant;

use super::provider_table::ProviderKey;

/// The part of its audiences that a lane may have unsettled.
const PART: u64 = 16;
/// The same behind a crash.
const CAREFUL_PART: u64 = 128;
/// From this size on an audience is large; less where a producer is not to make as much in advance.
const LARGE_DEVICES: u64 = 24_000;
/// A campaign of which nothing was leased for this long counts no more.
const KEPT: Duration = Duration::from_secs(60);
/// Campaigns of a lane that are remembered, those that came last.
const CAMPAIGNS_MAX_COUNT: usize = 64;
/// Lanes that are remembered; what is forgotten is learned again with the next chunk.
const LANES_MAX_COUNT: usize = 4_096;

/// The audiences of all lanes.
#[derive(Debug)]
pub(crate) struct Audiences {
    large: u64,
    lanes: Mutex<HashMap<ProviderKey, VecDeque<SeenAudience>>>,
}

/// The devices of a campaign that its producer has seen.
#[derive(Debug)]
struct SeenAudience {
    message: MessageId,
    devices: u64,
    noted: Instant,
}

impl Audiences {
    /// Starts without any; of a campaign no more than `ahead` deliveries are made in advance.
    pub(crate) fn new(ahead: u64) -> Self {
        Self { large: LARGE_DEVICES.min(ahead), lanes: Mutex::default() }
    }

    /// Notes that a campaign has at least so many devices in a lane.
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

    /// Returns the most that a lane is to have unsettled; fewer than a chunk means one chunk.
    pub(crate) fn share(&self, lane: ProviderKey, is_careful: bool) -> u64 {
        if lane.1 == ProviderKind::Gateway {
            // Nothing is given to our own devices before it is settled.
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

/// Returns how many devices of a campaign the books know of, which may be damaged and hold anything.
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
