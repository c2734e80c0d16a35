//! Student's and the normal distribution, as needed by tests and intervals.

/// Maximum of terms of a continued fraction; far more than needed for convergence.
const TERMS_MAX: u32 = 500;
/// Bisection steps until a quantile has the precision of a double.
const HALVINGS: u32 = 50;
/// Degrees of freedom above which the distribution equals the normal one to three digits.
const DEGREES_MAX: f64 = 1000.0;
/// Lanczos' customary coefficients for g = 7.
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// Returns the number of standard errors that enclose the share `confidence` of Student's distribution, for at least one degree of freedom,
/// not necessarily an integer.
#[must_use]
pub fn student_t(confidence: f64, degrees: f64) -> f64 {
    let degrees = degrees.clamp(1.0, DEGREES_MAX);
    // The tangent maps the half line to a finite interval for the bisection.
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if 1.0 - student_p(degrees.sqrt() * middle.tan(), degrees) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    degrees.sqrt() * low.tan()
}

/// Returns the two-sided tail of Student's distribution beyond `t`.
#[must_use]
pub fn student_p(t: f64, degrees: f64) -> f64 {
    let degrees = degrees.clamp(1.0, DEGREES_MAX);
    beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// Returns the two-sided tail of the normal distribution beyond `z`.
#[must_use]
pub fn normal_p(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let density = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 2.5 {
        // erf(x) = 2/sqrt(pi) exp(-x^2) (x + 2/3 x^3 + 4/15 x^5 + …)
        let mut term = x;
        let mut sum = x;
        for n in 1..TERMS_MAX {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
            if term < sum * f64::EPSILON {
                break;
            }
        }
        (1.0 - 2.0 * density * sum).max(0.0)
    } else {
        let fraction = (1..60).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below);
        density / fraction
    }
}

/// Returns the regularized incomplete beta function.
fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // Each of the two fractions converges fast on one side of the middle.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// Returns the continued fraction of the incomplete beta function, by Lentz' method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let far_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / far_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for term in 1..TERMS_MAX {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for numerator in [even, odd] {
            d = 1.0 / far_from_zero(1.0 + numerator * d);
            c = far_from_zero(1.0 + numerator / c);
            result *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// Returns the logarithm of the gamma function, for arguments of at least one half.
fn ln_gamma(x: f64) -> f64 {
    let x = x - 1.0;
    let base = x + 7.5;
    let sum = LANCZOS
        .iter()
        .enumerate()
        .skip(1)
        .fold(LANCZOS[0], |sum, (place, coefficient)| sum + coefficient / (x + place as f64));
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
mod tests;
