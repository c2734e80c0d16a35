//! Logs of real phones: a CSV of percent over time, or the history that `dumpsys batterystats` prints.

use super::meter::number;
use super::{EnergyError, EnergyKind};
use serde::Serialize;

/// Lines of a log; one in three minutes fills it in years.
pub const LINES_MAX: u64 = 2_000_000;
const MINUTE_S: f64 = 60.0;
const HOUR_S: f64 = 3600.0;
const DAY_S: f64 = 86_400.0;
const PERCENT: f64 = 100.0;

/// One line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LogLine {
    /// Seconds of the log's clock.
    pub seconds: f64,
    /// Charge that is left, of 100.
    pub percent: f64,
    /// Voltage of the cell, if the line tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volt: Option<f64>,
    /// Temperature of the cell, if the line tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<f64>,
}

/// What a log says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhoneLog {
    /// Always imported: a phone measured it.
    pub kind: EnergyKind,
    /// Its lines.
    #[serde(skip)]
    pub lines: Vec<LogLine>,
    /// From the first line to the last.
    pub hours: f64,
    /// Charge at the first line.
    pub from_percent: f64,
    /// Charge at the last line.
    pub to_percent: f64,
    /// Hours from full to empty at the mean rate of the log; the same as `hours` for a log of a whole discharge.
    pub hours_full: Option<f64>,
    /// True when the log is not a whole discharge, so that `hours_full` is longer than what was seen.
    pub is_extrapolated: bool,
    /// Least and greatest voltage.
    pub volt: Option<(f64, f64)>,
    /// Least and greatest temperature.
    pub celsius: Option<(f64, f64)>,
}

/// Reads a log in either form.
pub fn read(text: &str) -> Result<PhoneLog, EnergyError> {
    // Some editors put a byte order mark before the first line.
    let text = text.trim_start_matches('\u{feff}');
    let is_history = text.lines().take(200).any(|line| line.trim_start().starts_with("Battery History"));
    let lines = if is_history { history(text) } else { table(text) }?;
    sum_up(lines)
}

fn sum_up(lines: Vec<LogLine>) -> Result<PhoneLog, EnergyError> {
    let (Some(first), Some(last)) = (lines.first().copied(), lines.last().copied()) else {
        return Err(EnergyError::Missing("there is no line with time and percent".into()));
    };
    let hours = (last.seconds - first.seconds) / HOUR_S;
    let spent = first.percent - last.percent;
    // A phone's percent is whole, and most switch off before it says 0.
    let is_whole = first.percent >= 99.0 && last.percent <= 1.0;
    Ok(PhoneLog {
        kind: EnergyKind::Imported,
        hours,
        from_percent: first.percent,
        to_percent: last.percent,
        hours_full: if is_whole { Some(hours) } else { (spent >= 1.0).then(|| hours * PERCENT / spent) },
        is_extrapolated: !is_whole,
        volt: extremes(lines.iter().filter_map(|line| line.volt)),
        celsius: extremes(lines.iter().filter_map(|line| line.celsius)),
        lines,
    })
}

fn extremes(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    Some((values.clone().reduce(f64::min)?, values.reduce(f64::max)?))
}

/// Takes the next line into a log, if it makes sense behind the last.
fn push(lines: &mut Vec<LogLine>, next: LogLine, number: u64) -> Result<(), EnergyError> {
    let wrong = |problem: String| Err(EnergyError::line(number, problem));
    if !(0.0..=PERCENT).contains(&next.percent) {
        return wrong(format!("{} % is no charge", next.percent));
    }
    if let Some(last) = lines.last() {
        if next.seconds < last.seconds {
            return wrong("the time goes back: one discharge in the order of time is wanted".into());
        }
        if next.percent > last.percent + 1.0 {
            return wrong(format!(
                "the charge rises from {} to {} %: cut the log to one discharge without a charger",
                last.percent, next.percent
            ));
        }
    }
    if number > LINES_MAX {
        return wrong(format!("more than {LINES_MAX} lines"));
    }
    lines.push(next);
    Ok(())
}

/// Reads a CSV with a header: time (seconds; `time_ms` milliseconds), percent (or level), voltage, temperature.
///
/// Android's own units are understood: a voltage above 100 is millivolts, a temperature above 100 tenths of a degree.
fn table(text: &str) -> Result<Vec<LogLine>, EnergyError> {
    let mut lines = Vec::new();
    let mut columns: Option<PhoneLogColumns> = None;
    for (place, line) in text.lines().enumerate() {
        let at = place as u64 + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
        let wrong = |problem: String| EnergyError::line(at, problem);
        let Some(known) = columns else {
            columns = Some(PhoneLogColumns::of(&cells).map_err(wrong)?);
            continue;
        };
        push(&mut lines, known.line(&cells).map_err(wrong)?, at)?;
    }
    Ok(lines)
}

#[derive(Clone, Copy)]
struct PhoneLogColumns {
    time: usize,
    per_second: f64,
    percent: usize,
    volt: Option<usize>,
    celsius: Option<usize>,
}

impl PhoneLogColumns {
    fn of(cells: &[&str]) -> Result<Self, String> {
        let find =
            |names: &[&str]| cells.iter().position(|cell| names.contains(&&*cell.to_ascii_lowercase()));
        let seconds = find(&["time", "time_s", "seconds"]).map(|place| (place, 1.0));
        let time = seconds.or_else(|| find(&["time_ms", "milliseconds"]).map(|place| (place, 1e3)));
        let (time, per_second) = time.ok_or("a header with time (or time_ms) and percent is wanted")?;
        let percent = find(&["percent", "level"]).ok_or("the header has no column percent (or level)")?;
        let volt = find(&["voltage", "volt", "v"]);
        let celsius = find(&["temperature", "celsius", "temp"]);
        Ok(Self { time, per_second, percent, volt, celsius })
    }

    fn line(&self, cells: &[&str]) -> Result<LogLine, String> {
        let value = |place: usize, what: &str| {
            let cell = cells.get(place).ok_or_else(|| format!("{what} is missing"))?;
            number(cell).ok_or_else(|| format!("{what} {cell:?} is no number"))
        };
        let more = |place: Option<usize>, what: &str| place.map(|place| value(place, what)).transpose();
        Ok(LogLine {
            seconds: value(self.time, "the time")? / self.per_second,
            percent: value(self.percent, "percent")?,
            volt: more(self.volt, "the voltage")?.map(volts),
            celsius: more(self.celsius, "the temperature")?.map(degrees),
        })
    }
}

fn volts(told: f64) -> f64 {
    if told > 100.0 { told / 1e3 } else { told }
}

fn degrees(told: f64) -> f64 {
    if told > 100.0 { told / 10.0 } else { told }
}

/// Reads lines such as `+1h02m03s456ms (2) 085 status=discharging volt=3987 temp=265`; other lines are left out.
fn history(text: &str) -> Result<Vec<LogLine>, EnergyError> {
    let mut lines: Vec<LogLine> = Vec::new();
    let (mut volt, mut celsius) = (None, None);
    for (place, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(seconds) = words.next().and_then(since) else { continue };
        let Some(percent) = words.by_ref().take(2).find_map(three_digits) else { continue };
        for word in words {
            match word.split_once('=') {
                Some(("volt", told)) => volt = number(told).map(volts).or(volt),
                // Here temperatures are always tenths of a degree.
                Some(("temp", told)) => celsius = number(told).map(|tenths| tenths / 10.0).or(celsius),
                _ => {}
            }
        }
        push(&mut lines, LogLine { seconds, percent, volt, celsius }, place as u64 + 1)?;
    }
    Ok(lines)
}

/// Reads a charge: always three digits in a history.
fn three_digits(word: &str) -> Option<f64> {
    (word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit())).then(|| number(word)).flatten()
}

/// Reads a span such as `+1d02h03m04s005ms`, or `0`.
fn since(word: &str) -> Option<f64> {
    if word == "0" {
        return Some(0.0);
    }
    let mut rest = word.strip_prefix('+')?;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (digits, behind) = rest.split_at(end);
        let unit_end = behind.find(|letter: char| letter.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_end);
        let seconds = match unit {
            "d" => DAY_S,
            "h" => HOUR_S,
            "m" => MINUTE_S,
            "s" => 1.0,
            "ms" => 1e-3,
            _ => return None,
        };
        sum += number(digits)? * seconds;
        rest = behind;
    }
    Some(sum)
}
