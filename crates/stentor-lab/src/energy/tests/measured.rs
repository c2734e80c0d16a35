//! Meters of this machine, on a directory in place of `/sys`; the files are really read.

use super::super::measured::find;
use super::super::{EnergyKind, EnergySide, EnergySource, SECOND_NS};
use super::assert_near;
use std::path::Path;
use tempfile::TempDir;

/// A directory in place of `/sys`.
struct Sys(TempDir);

impl Sys {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join("class").join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, format!("{text}\n")).expect("written");
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

#[test]
fn a_counter_that_goes_round_at_its_limit_is_added_up() {
    let sys = Sys::new();
    let zone = "powercap/intel-rapl:0";
    sys.write(&format!("{zone}/name"), "package-0");
    sys.write(&format!("{zone}/max_energy_range_uj"), "9999999");
    sys.write(&format!("{zone}/energy_uj"), "9000000");
    sys.write("powercap/intel-rapl/enabled", "1");
    let (mut sensors, unusable) = find(sys.path());
    assert!(unusable.is_empty() && sensors.len() == 1, "{unusable:?} {sensors:?}");
    let mut sensor = sensors.remove(0);
    for (second, counter) in ["9000000", "9500000", "0", "3000000", "2000000"].iter().enumerate() {
        sys.write(&format!("{zone}/energy_uj"), counter);
        sensor.read(second as i64 * SECOND_NS).expect("read");
    }
    let source = sensor.finish().expect("readings");
    let value = source.value(EnergySide::Machine).expect("a value");
    // 0.5 J, 0.5 J across the wrap-around, 3 J, and all but 1 J of the 10 J of a round.
    assert_near(value.joule.expect("resolved"), 0.5 + 0.5 + 3.0 + 9.0, 1e-9);
    assert_near(source.joules(0, SECOND_NS / 2).expect("within"), 0.25, 1e-9);
    assert_eq!((value.kind, value.component.as_str()), (EnergyKind::Measured, "package-0"));
    assert_eq!(value.model, "powercap intel-rapl:0 package-0");
    assert_eq!(source.joules(0, 5 * SECOND_NS), None, "what was not measured is not known");
}

#[test]
fn an_ina219_is_read_by_its_power_or_else_by_volt_and_ampere() {
    let sys = Sys::new();
    sys.write("hwmon/hwmon0/name", "coretemp");
    sys.write("hwmon/hwmon0/temp1_input", "41000");
    sys.write("hwmon/hwmon1/name", "ina219");
    sys.write("hwmon/hwmon1/in1_input", "5000");
    sys.write("hwmon/hwmon1/curr1_input", "400");
    sys.write("hwmon/hwmon2/name", "ina226");
    sys.write("hwmon/hwmon2/power1_input", "1500000");
    let (mut sensors, unusable) = find(sys.path());
    assert!(unusable.is_empty() && sensors.len() == 2, "{unusable:?} {sensors:?}");
    for at_ns in [0, SECOND_NS] {
        sensors.iter_mut().for_each(|sensor| sensor.read(at_ns).expect("read"));
    }
    sys.write("hwmon/hwmon1/curr1_input", "200");
    sensors.iter_mut().for_each(|sensor| sensor.read(2 * SECOND_NS).expect("read"));
    let joules: Vec<f64> =
        sensors.into_iter().map(|sensor| super::all_joules(&sensor.finish().expect("readings"))).collect();
    assert_near(joules[0], 2.0 + 1.5, 1e-9);
    assert_near(joules[1], 3.0, 1e-9);
}

#[test]
fn a_battery_counts_only_while_nothing_charges_it() {
    let sys = Sys::new();
    let battery = |file: &str, text: &str| sys.write(&format!("power_supply/BAT0/{file}"), text);
    sys.write("power_supply/AC/type", "Mains");
    battery("type", "Battery");
    battery("status", "Charging");
    battery("voltage_now", "3800000");
    battery("current_now", "-500000");
    let (sensors, unusable) = find(sys.path());
    assert!(sensors.is_empty() && unusable[0].problem.contains("take the charger off"), "{unusable:?}");
    battery("status", "Discharging");
    let (mut sensors, _) = find(sys.path());
    let mut sensor = sensors.remove(0);
    assert!(sensor.origin.coefficients_ref.contains("voltage_now x current_now"));
    for at_ns in [0, 10 * SECOND_NS] {
        sensor.read(at_ns).expect("read");
    }
    assert_near(super::all_joules(&sensor.finish().expect("readings")), 19.0, 1e-9);
}

#[test]
fn what_is_no_number_names_its_file() {
    let sys = Sys::new();
    sys.write("powercap/intel-rapl:0/max_energy_range_uj", "much");
    sys.write("powercap/intel-rapl:0/energy_uj", "1");
    let (sensors, unusable) = find(sys.path());
    assert!(sensors.is_empty() && unusable[0].problem.contains("max_energy_range_uj"), "{unusable:?}");
    assert!(find(Path::new("/nowhere")).0.is_empty());
}
