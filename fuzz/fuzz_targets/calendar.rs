//! Cron patterns and time zones: any text is refused or gives ticks that increase and end.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_core::time::Timestamp;
use stentor_core::schedule::Recurrence;
use stentor_server::pipeline::calendar::{next_tick, ticks_to_fire, upcoming};

const STARTS_MS: [i64; 4] = [0, 1_900_000_000_000, 253_402_207_200_000, -377_705_023_201_000];

fuzz_target!(|text: &str| {
    let Ok(recurrence) = serde_json::from_str::<Recurrence>(text) else { return };
    for start in STARTS_MS.map(Timestamp::from_millis) {
        let Ok(ticks) = upcoming(&recurrence, start, 8) else { return };
        assert_eq!(ticks.first().copied(), next_tick(&recurrence, start).unwrap());
        assert!(ticks.is_sorted_by(|earlier, later| earlier < later));
        let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else { continue };
        assert!(*first > start && recurrence.until.is_none_or(|until| *last <= until));
        let due = ticks_to_fire(&recurrence, *first, *last, recurrence.catch_up).unwrap();
        assert!(due.fire.iter().all(|tick| ticks.contains(tick)));
        assert!(due.next.is_none_or(|next| next > *last));
    }
});
