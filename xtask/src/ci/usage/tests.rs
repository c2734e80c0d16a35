use super::*;

#[test]
fn a_child_that_was_waited_for_counts_with_its_processor_time() {
    let meter = Meter::start();
    let busy = "i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done";
    assert!(std::process::Command::new("sh").args(["-c", busy]).status().unwrap().success());
    let cost = meter.read();
    // Other tests of this process are counted too, so that there is no upper bound.
    assert!(cost.wall_seconds > 0.0 && cost.processor_seconds >= 0.02, "{cost:?}");
}

#[test]
fn a_process_began_before_it_measures_anything() {
    let meter = Meter::start();
    let (whole, part) = (since_process_start(), meter.read());
    assert!(whole.wall_seconds + 0.02 >= part.wall_seconds, "{whole:?} {part:?}");
    assert!(whole.wall_seconds < 86_400.0 && whole.processor_seconds >= 0.0, "{whole:?}");
}
