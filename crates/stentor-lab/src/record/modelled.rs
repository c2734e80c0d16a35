//! Energy of both sides of a fork, by the model of its study's processor or board.

use super::{ForkRecord, phase};
use crate::energy::processor::{Processor, SideSeconds};
use crate::energy::{EnergyKind, EnergySide, EnergyValue};

const NANOS: f64 = 1e9;
/// Components that such a model has.
const COMPONENTS: [&str; 2] = ["processor", "board"];

/// Returns the energy of each side whose time is known. A phone's processor is the client's alone; boards are on both sides.
#[must_use]
pub fn of_fork(record: &ForkRecord, processor: &Processor) -> Vec<EnergyValue> {
    let sides = [
        (EnergySide::Client, record.cpu.client, phase::RTT),
        (EnergySide::Server, record.cpu.server, phase::SERVICE),
    ];
    let count = if processor.is_whole_board { sides.len() } else { 1 };
    let energy = |(side, processor_ns, wall): (EnergySide, Option<u64>, &str)| {
        let times = record.latency.get(wall);
        let wall = times.map(|times| times.mean * times.n as f64 / NANOS);
        processor.energy_of(side, SideSeconds { processor: processor_ns.map(|ns| ns as f64 / NANOS), wall })
    };
    sides.into_iter().take(count).filter_map(energy).collect()
}

/// Replaces the modelled energy of both sides, so that older records follow the rules of today.
pub(crate) fn model_again(record: &mut ForkRecord, processor: &Processor) {
    let is_of_sides =
        |one: &EnergyValue| one.kind == EnergyKind::Modelled && COMPONENTS.contains(&one.component.as_str());
    if record.energy.iter().any(is_of_sides) {
        record.energy.retain(|one| !is_of_sides(one));
        record.energy.extend(of_fork(record, processor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::EnergyOrigin;
    use crate::record::{PhaseLatency, Sides};

    fn record() -> ForkRecord {
        let times = |ms: f64| PhaseLatency { mean: ms * 1e6, n: 10, ..PhaseLatency::default() };
        ForkRecord {
            cpu: Sides { client: Some(20_000_000), server: Some(40_000_000) },
            latency: [(phase::RTT.to_owned(), times(100.0)), (phase::SERVICE.to_owned(), times(80.0))].into(),
            ..ForkRecord::default()
        }
    }

    fn joules(record: &ForkRecord, id: &str) -> Vec<(String, f64)> {
        let all = Processor::all();
        let processor = all.iter().find(|one| one.id == id).expect("known");
        let values = of_fork(record, processor);
        values.iter().map(|one| (one.name(), one.joule.expect("modelled"))).collect()
    }

    #[test]
    fn a_board_draws_its_power_while_time_passes_and_not_while_it_computes() {
        let found = joules(&record(), "raspberry-pi-b");
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["client board", "server board"]);
        // 1.9 W for ten exchanges of 100 and of 80 ms.
        assert!((found[0].1 - 1.9).abs() < 1e-9 && (found[1].1 - 1.52).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_phone_needs_more_seconds_of_its_processor_than_this_machine() {
        let found = joules(&record(), "htc-dream");
        // 30 times 20 ms at 0.434 W.
        assert!((found[0].1 - 0.02 * 30.0 * 0.434).abs() < 1e-9, "{found:?}");
        let all = Processor::all();
        let phone = all.iter().find(|one| one.id == "htc-dream").expect("known");
        let [value] = &of_fork(&record(), phone)[..] else { panic!("the server is no phone") };
        assert!(
            value.model.contains("30 (10 to 100)") && value.model.contains("0.342 to 0.434"),
            "{value:?}"
        );
    }

    #[test]
    fn older_records_are_modelled_by_the_rules_of_today() {
        let origin = EnergyOrigin::new(EnergyKind::Modelled, "CPU seconds x 1.9 W", "none");
        let mut old = record();
        old.energy = vec![
            EnergyValue::of("radio", EnergySide::Client, 5.0, 1.0, &origin),
            EnergyValue::of("processor", EnergySide::Client, 0.038, 0.02, &origin),
        ];
        let board = Processor::all().into_iter().find(|one| one.id == "raspberry-pi-b").expect("known");
        model_again(&mut old, &board);
        let names: Vec<String> = old.energy.iter().map(EnergyValue::name).collect();
        assert_eq!(names, ["client radio", "client board", "server board"]);
        let mut without = record();
        model_again(&mut without, &board);
        assert!(without.energy.is_empty(), "nothing was modelled in that run");
    }
}
