//! Logs of real phones: a CSV of charge over time, or the history printed by `dumpsys batterystats`.

use super::meter::number;
use super::{EnergyError, EnergyKind};
use serde::Serialize;

/// Maximum of lines in a log: years at one line every three minutes.
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
    /// Remaining charge, in percent.
    pub percent: f64,
    /// Voltage of the cell, if logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volt: Option<f64>,
    /// Temperature of the cell, if logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<f64>,
}

/// The contents of a log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhoneLog {
    /// Always imported, because a phone measured it.
    pub kind: EnergyKind,
    /// Its lines.
    #[serde(skip)]
    pub lines: Vec<LogLine>,
    /// Time from the first line to the last.
    pub hours: f64,
    /// Charge at the first line.
    pub from_percent: f64,
    /// Charge at the last line.
    pub to_percent: f64,
    /// Hours from full to empty at the mean rate of the log; equal to `hours` for a log of a whole discharge.
    pub hours_full: Option<f64>,
    /// True if the log is not a whole discharge, so that `hours_full` exceeds the observed time.
    pub is_extrapolated: bool,
    /// Minimum and maximum voltage.
    pub volt: Option<(f64, f64)>,
    /// Minimum and maximum temperature.
    pub celsius: Option<(f64, f64)>,
}

/// Parses a log in either form.
pub fn read(text: &str) -> Result<PhoneLog, EnergyError> {
    // Some editors write a byte order mark before the first line.
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
    // A phone's percentage is an integer, and most phones switch off before it reaches 0.
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

/// Appends the next line to a log. Fails if it is inconsistent with the last line.
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

/// Parses a CSV with a header: time (seconds; `time_ms` milliseconds), percent (or level), voltage, temperature.
///
/// Android's own units are converted: a voltage above 100 is in millivolts, a temperature above 100 in tenths of a degree.
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

fn volts(reading: f64) -> f64 {
    if reading > 100.0 { reading / 1e3 } else { reading }
}

fn degrees(reading: f64) -> f64 {
    if reading > 100.0 { reading / 10.0 } else { reading }
}

/// Parses lines such as `+1h02m03s456ms (2) 085 status=discharging volt=3987 temp=265`; other lines are ignored.
fn history(text: &str) -> Result<Vec<LogLine>, EnergyError> {
    let mut lines: Vec<LogLine> = Vec::new();
    let (mut volt, mut celsius) = (None, None);
    for (place, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(seconds) = words.next().and_then(since) else { continue };
        let Some(percent) = words.by_ref().take(2).find_map(three_digits) else { continue };
        for word in words {
            match word.split_once('=') {
                Some(("volt", volt_text)) => volt = number(volt_text).map(volts).or(volt),
                // In a history temperatures are always in tenths of a degree.
                Some(("temp", tenths_text)) => {
                    celsius = number(tenths_text).map(|tenths| tenths / 10.0).or(celsius)
                }
                _ => {}
            }
        }
        push(&mut lines, LogLine { seconds, percent, volt, celsius }, place as u64 + 1)?;
    }
    Ok(lines)
}

/// Parses a charge, which always has three digits in a history.
fn three_digits(word: &str) -> Option<f64> {
    (word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit())).then(|| number(word)).flatten()
}

/// Parses a duration such as `+1d02h03m04s005ms`, or `0`.
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
