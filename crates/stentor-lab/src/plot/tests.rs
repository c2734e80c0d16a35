use super::*;

#[test]
fn numbers_have_at_most_three_digits_that_mean_something() {
    let shortened = [0.0, 0.001_234, 0.05, 1.0, 1.239, 12.34, 123.4, 1234.0, 1_234_567.0].map(short);
    assert_eq!(
        shortened,
        ["0", "0.00123", "0.05", "1", "1.24", "12.3", "123", "1234", "1\u{202f}234\u{202f}567"]
    );
}

#[test]
fn an_axis_of_factors_puts_equal_factors_equally_far_apart() {
    let axis = Axis::log([1.0, 100.0].into_iter(), 0.0, 300.0).expect("positive values");
    let steps = [axis.place(10.0) - axis.place(1.0), axis.place(100.0) - axis.place(10.0)];
    assert!((steps[0] - steps[1]).abs() < 1e-9, "{steps:?}");
    assert_eq!(axis.ticks(), [1.0, 3.0, 10.0, 30.0, 100.0]);
    assert!(Axis::log([0.0, -1.0, f64::NAN].into_iter(), 0.0, 1.0).is_none());
}

#[test]
fn equal_values_still_have_an_axis() {
    let axis = Axis::log([5.0, 5.0].into_iter(), 0.0, 100.0).expect("a positive value");
    assert!((axis.place(5.0) - 50.0).abs() < 1.0 && !axis.ticks().is_empty(), "{axis:?}");
    assert_eq!(Axis::linear(0.0, 0.0, 100.0).place(0.0), 0.0);
}

#[test]
fn a_drawing_on_its_own_has_no_variables_and_a_ground() {
    let mut canvas = Canvas::new(100.0, 50.0);
    canvas.text((1.0, 1.0), "start", INK, "a < b");
    canvas.mark((5.0, 5.0), SeriesStyle::of(5));
    let drawn = canvas.finish("Title & more", "What it shows");
    assert!(
        drawn.contains("var(--ink,#1a202c)")
            && drawn.contains("a &lt; b")
            && drawn.contains("Title &amp; more")
    );
    let alone = standalone(&drawn);
    assert!(!alone.contains("var(") && alone.contains("#1a202c") && alone.contains("<rect width=\"100%\""));
}

#[test]
fn many_series_all_look_different() {
    let looks: std::collections::BTreeSet<String> =
        (0..64).map(|place| format!("{:?}", SeriesStyle::of(place))).collect();
    assert_eq!(looks.len(), 64);
}
