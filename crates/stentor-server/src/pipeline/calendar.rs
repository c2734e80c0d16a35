//! The ticks of recurring schedules: cron patterns of five fields, read in a time zone.
//!
//! Rules for the difficult cases, each covered by a test:
//! - Patterns with explicit hours (`30 2 * * *`, `0 9,17 * * 1-5`) follow the wall clock, and each time fires exactly once. A time that a
//!   clock change skips fires at the first instant after the change. A time that occurs twice fires at its first occurrence.
//! - Patterns with `*` in the hour field (`*/15 * * * *`) follow elapsed time: a repeated hour has its ticks twice, a skipped hour has
//!   none.
//! - 29 February waits for a leap year. `L` is the last day of the month. If both day of month and day of week are given, the pattern fires
//!   when either matches.
//! - A range may wrap around: `22-6` are the hours of the night, `FRI-MON` is a long weekend.
//! - A pattern that can never fire has no next tick. Nothing fires after `until`.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use stentor_core::chunk::TrafficClass;
use stentor_core::error::Invalid;
use stentor_core::schedule::{CatchUp, Recurrence};
use stentor_core::time::Timestamp;

/// The most missed ticks that [`CatchUp::All`] fires at a time; the rest follow with the next check.
pub const CATCH_UP_MAX_TICKS: usize = 100;
/// Far more civil times than any clock change can map to one instant.
const FOLDED_MAX_TICKS: usize = 5_000;
const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

/// Ticks to fire now, and the next due time of the schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Due {
    /// Ticks to fire, in order.
    pub fire: Vec<Timestamp>,
    /// The tick after those; `None` ends the schedule.
    pub next: Option<Timestamp>,
}

/// Returns the first tick later than `after`, or `None` when there is none.
pub fn next_tick(recurrence: &Recurrence, after: Timestamp) -> Result<Option<Timestamp>, Invalid> {
    Ok(Calendar::read(recurrence)?.next(after))
}

/// Returns the next `count` ticks later than `after`.
pub fn upcoming(recurrence: &Recurrence, after: Timestamp, count: usize) -> Result<Vec<Timestamp>, Invalid> {
    let calendar = Calendar::read(recurrence)?;
    Ok(std::iter::successors(calendar.next(after), |tick| calendar.next(*tick)).take(count).collect())
}

/// Decides which ticks of a schedule fire at `now`, by its rule for missed ticks. `next_due` is the schedule's next due tick.
///
/// A tick is missed if a later one is already due. The latest due tick counts as on time however late the check is. Under [`CatchUp::Skip`]
/// it fires only if it was due within the last minute.
pub fn ticks_to_fire(
    recurrence: &Recurrence,
    next_due: Timestamp,
    now: Timestamp,
    catch_up: CatchUp,
) -> Result<Due, Invalid> {
    let calendar = Calendar::read(recurrence)?;
    if next_due > now {
        return Ok(Due { fire: Vec::new(), next: Some(next_due) });
    }
    if catch_up == CatchUp::All {
        return Ok(calendar.all_missed(next_due, now));
    }
    let latest = calendar.latest(next_due, now);
    let late = now.as_millis().saturating_sub(latest.as_millis());
    let fires = catch_up == CatchUp::Once || late < ON_TIME_MAX_MS;
    Ok(Due { fire: if fires { vec![latest] } else { Vec::new() }, next: calendar.next(latest) })
}

/// Finds a time zone in the system's database, or else in the bundled one: system databases lack some names.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).or_else(|_| TimeZoneDatabase::bundled().get(name)).ok()
}

/// Moves the start of an audience off the full minute, at which most schedulers start. The offset is at most `within` and the same for
/// equal seeds.
#[must_use]
pub fn off_the_minute(due_at: Timestamp, class: TrafficClass, within: Duration, seed: u64) -> Timestamp {
    let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
    if class != TrafficClass::Bulk || within_ms == 0 || due_at.as_millis() % MINUTE_MS != 0 {
        return due_at;
    }
    due_at.plus(Duration::from_millis(1 + scattered(seed) % within_ms))
}

/// Maps neighbouring numbers to distant ones (the finalizer of SplitMix64; Steele, Lea and Flood 2014).
const fn scattered(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A tick that is less late than this is on time.
const ON_TIME_MAX_MS: i64 = 60_000;

/// A parsed recurrence.
struct Calendar {
    cron: Cron,
    zone: TimeZone,
    until: Option<Timestamp>,
    elapsed: bool,
}

impl Calendar {
    fn read(recurrence: &Recurrence) -> Result<Self, Invalid> {
        let fields: Vec<_> = recurrence.cron.split_whitespace().collect();
        let &[_, hour, _, _, _] = fields.as_slice() else {
            return Err(Invalid::new(
                "cron",
                "must have five fields: minute, hour, day of month, month, day of week",
            ));
        };
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let pattern = ranges::unrolled(&fields);
        let cron = parser.parse(&pattern).map_err(|error| Invalid::new("cron", error.to_string()))?;
        let name = recurrence.time_zone.as_str();
        let zone = zone(name).ok_or_else(|| {
            Invalid::new("time_zone", format!("`{name}` is not in the IANA database; try `Europe/Rome`"))
        })?;
        Ok(Self { cron, zone, until: recurrence.until, elapsed: hour.starts_with('*') })
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = jiff::Timestamp::from_millisecond(after.as_millis()).ok()?.to_zoned(self.zone.clone());
        let tick = if self.elapsed {
            self.cron.find_next_occurrence(&start, false).ok()?.timestamp()
        } else {
            self.next_on_the_wall(&start)?
        };
        let tick = Timestamp::from_millis(tick.as_millisecond());
        (tick > after && self.until.is_none_or(|until| tick <= until)).then_some(tick)
    }

    /// Iterates over civil times. Several may map to one instant, and a time that occurs twice may lie before `start`.
    fn next_on_the_wall(&self, start: &Zoned) -> Option<jiff::Timestamp> {
        let mut civil = start.datetime();
        for _ in 0..FOLDED_MAX_TICKS {
            civil = self.cron.find_next_occurrence(&civil, false).ok()?;
            let instant = self.instant(civil)?;
            if instant > start.timestamp() {
                return Some(instant);
            }
        }
        None
    }

    fn instant(&self, civil: DateTime) -> Option<jiff::Timestamp> {
        let ambiguous = self.zone.to_ambiguous_zoned(civil);
        let in_gap = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
        let earlier = ambiguous.earlier().ok()?.timestamp();
        if in_gap {
            return Some(self.zone.following(earlier).next()?.timestamp());
        }
        Some(earlier)
    }

    /// Returns the last tick not after `now`. Searches backwards from `now` in growing windows, never before `first`.
    fn latest(&self, first: Timestamp, now: Timestamp) -> Timestamp {
        let mut window = HOUR_MS;
        loop {
            let from = now.as_millis().saturating_sub(window).max(first.as_millis());
            let from = Timestamp::from_millis(from);
            let ticks = std::iter::successors(self.next(from), |tick| self.next(*tick));
            match ticks.take_while(|tick| *tick <= now).last() {
                Some(tick) => return tick,
                None if from <= first => return first,
                None => window = window.saturating_mul(4),
            }
        }
    }

    fn all_missed(&self, first: Timestamp, now: Timestamp) -> Due {
        let ticks = std::iter::successors(Some(first), |tick| self.next(*tick));
        let fire: Vec<_> = ticks.take_while(|tick| *tick <= now).take(CATCH_UP_MAX_TICKS).collect();
        let next = fire.last().and_then(|tick| self.next(*tick));
        Due { fire, next }
    }
}

mod ranges;
#[cfg(test)]
mod tests;
