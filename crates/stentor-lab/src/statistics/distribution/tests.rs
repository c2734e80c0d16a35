use super::*;

fn is_near(found: f64, expected: f64, by: f64) -> bool {
    (found / expected - 1.0).abs() < by
}

#[test]
fn quantiles_of_students_distribution_are_those_of_the_tables() {
    // Two-sided, from the tables in statistics books.
    let table = [
        (0.95, 1.0, 12.706),
        (0.95, 2.0, 4.303),
        (0.95, 3.0, 3.182),
        (0.95, 4.0, 2.776),
        (0.95, 10.0, 2.228),
        (0.95, 30.0, 2.042),
        (0.99, 2.0, 9.925),
        (0.99, 5.0, 4.032),
        (0.90, 7.0, 1.895),
        (0.95, 1000.0, 1.962),
    ];
    for (confidence, degrees, expected) in table {
        let found = student_t(confidence, degrees);
        assert!((found - expected).abs() < 0.0011, "{confidence} {degrees}: {found}, not {expected}");
    }
}

#[test]
fn shares_beyond_a_quantile_are_what_was_asked_for() {
    for degrees in [1.0, 2.5, 17.776, 200.0] {
        for confidence in [0.5, 0.9, 0.95, 0.999] {
            let beyond = student_p(student_t(confidence, degrees), degrees);
            assert!((beyond - (1.0 - confidence)).abs() < 1e-9, "{degrees} {confidence}: {beyond}");
        }
    }
    // With one degree of freedom it is Cauchy's distribution: a quarter lies beyond 1 on each side.
    assert!((student_p(1.0, 1.0) - 0.5).abs() < 1e-12);
}

#[test]
fn shares_of_the_normal_distribution_are_those_of_the_tables() {
    let table =
        [(0.0, 1.0), (1.0, 0.317_310_5), (1.959_964, 0.05), (3.0, 0.002_699_796), (5.0, 5.733_031e-7)];
    for (z, expected) in table {
        assert!(
            is_near(normal_p(z), expected, 1e-5) && is_near(normal_p(-z), expected, 1e-5),
            "{z}: {}",
            normal_p(z)
        );
    }
    // Both methods of computation agree at their boundary.
    let seam = 2.5 * std::f64::consts::SQRT_2;
    assert!(is_near(normal_p(seam - 1e-9), normal_p(seam + 1e-9), 1e-6));
}
