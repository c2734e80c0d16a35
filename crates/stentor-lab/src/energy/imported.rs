//! Meter files: measurements of external meters, and earlier recordings of this program.

use super::meter::{MeterReading, TimeUnit, number};
use super::series::{EnergySeries, PowerReading};
use super::value::{EnergyKind, EnergyOrigin};
use super::{EnergyError, nanoseconds};

/// Maximum of lines in a meter file: 27 hours at 170 readings a second.
pub const LINES_MAX: u64 = 17_000_000;

/// A parsed meter file.
#[derive(Debug, Clone)]
pub struct MeterFile {
    /// Its readings, on this machine's monotonic clock if that was recorded, else on the meter's own clock.
    pub series: EnergySeries,
    /// True if the times are those of this machine's monotonic clock.
    pub is_monotonic: bool,
}

/// The index of each column in a line.
#[derive(Clone, Copy)]
struct ImportColumns {
    time: usize,
    volt: usize,
    ampere: usize,
    monotonic: Option<usize>,
    unit: TimeUnit,
}

/// The columns of a file without a header.
const BARE: ImportColumns =
    ImportColumns { time: 0, volt: 1, ampere: 2, monotonic: None, unit: TimeUnit::Seconds };

/// Parses lines of time, volt and ampere, with or without a header; lines that begin with `#` are comments.
///
/// A header names its columns `time` (or `time_s`, `time_ms`, `time_us`), `volt`, `ampere`. The column `monotonic_ns` is present if the
/// file was recorded here; its figures then count as measured, not imported.
pub fn read(text: &str, name: &str) -> Result<MeterFile, EnergyError> {
    let mut columns = None;
    let mut rows: Vec<(MeterReading, Option<i64>)> = Vec::new();
    // Spreadsheets write a byte order mark before the first line.
    for (place, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let number = place as u64 + 1;
        if number > LINES_MAX {
            return Err(EnergyError::line(number, format!("more than {LINES_MAX} lines: cut the file")));
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
        let wrong = |problem| EnergyError::line(number, problem);
        let known = match columns {
            Some(known) => known,
            None if is_header(&cells) => {
                columns = Some(header(&cells).map_err(wrong)?);
                continue;
            }
            None => *columns.insert(BARE),
        };
        let row = known.row(&cells).map_err(wrong)?;
        if rows.last().is_some_and(|(last, _)| row.0.time_s <= last.time_s) {
            return Err(wrong("the time does not rise: sort the lines, and leave none out twice".into()));
        }
        rows.push(row);
    }
    finish(&rows, name)
}

fn finish(rows: &[(MeterReading, Option<i64>)], name: &str) -> Result<MeterFile, EnergyError> {
    let offset = offset(rows);
    let reading = |(row, _): &(MeterReading, Option<i64>)| PowerReading {
        at_ns: nanoseconds(row.time_s).saturating_add(offset.unwrap_or_default()),
        watt: row.watt(),
    };
    let kind = if offset.is_some() { EnergyKind::Measured } else { EnergyKind::Imported };
    let origin = EnergyOrigin::new(kind, format!("meter file {name}"), "V x I dt by trapezoids");
    let powers: Vec<PowerReading> = rows.iter().map(reading).collect();
    let series = EnergySeries::of_power(origin, "board", &powers)?;
    Ok(MeterFile { series, is_monotonic: offset.is_some() })
}

/// Returns the offset of the monotonic clock from the meter's: the least difference, because lines can only be delayed. `None` if a line
/// lacks the monotonic time.
fn offset(rows: &[(MeterReading, Option<i64>)]) -> Option<i64> {
    let differences = rows.iter().map(|(row, at)| Some((*at)?.saturating_sub(nanoseconds(row.time_s))));
    differences.collect::<Option<Vec<i64>>>()?.into_iter().min()
}

fn is_header(cells: &[&str]) -> bool {
    cells.first().is_some_and(|cell| cell.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}

fn header(cells: &[&str]) -> Result<ImportColumns, String> {
    let find = |names: &[&str]| cells.iter().position(|cell| names.contains(&&*cell.to_ascii_lowercase()));
    let need = |names: &[&str]| find(names).ok_or_else(|| format!("the header has no column {}", names[0]));
    let times = [
        (["time", "time_s", "seconds"], TimeUnit::Seconds),
        (["time_ms", "milliseconds", "millis"], TimeUnit::Milliseconds),
        (["time_us", "microseconds", "micros"], TimeUnit::Microseconds),
    ];
    let time = times.iter().find_map(|(names, unit)| Some((find(names)?, *unit)));
    let (time, unit) = time.ok_or("the header has no column time (or time_ms, time_us)")?;
    let volt = need(&["volt", "v", "voltage"])?;
    let ampere = need(&["ampere", "a", "current"])?;
    Ok(ImportColumns { time, volt, ampere, monotonic: find(&["monotonic_ns"]), unit })
}

impl ImportColumns {
    fn row(&self, cells: &[&str]) -> Result<(MeterReading, Option<i64>), String> {
        let value = |place: usize, what: &str| {
            let cell = cells.get(place).ok_or_else(|| format!("{what} is missing"))?;
            number(cell).ok_or_else(|| format!("{what} {cell:?} is no number"))
        };
        let time_s = value(self.time, "the time")? / self.unit.per_second();
        if time_s.abs() > 4e9 {
            return Err(format!("the time {time_s} s is beyond a hundred years: is it in another unit?"));
        }
        let (volt, ampere) = (value(self.volt, "volt")?, value(self.ampere, "ampere")?);
        let at = self.monotonic.map(|place| {
            let cell = cells.get(place).copied().unwrap_or_default();
            cell.parse::<i64>().map_err(|_| format!("monotonic_ns {cell:?} is no whole number"))
        });
        Ok((MeterReading { time_s, volt, ampere }, at.transpose()?))
    }
}
