//! Ranges that wrap around the end of their field, which the library rejects: `22-6` becomes `22,23,0,1,2,3,4,5,6`.

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The values of a field, in the order of the fields.
const FIELDS: [Values; 5] = [
    Values { first: 0, last: 59, names: &[] },
    Values { first: 0, last: 23, names: &[] },
    Values { first: 1, last: 31, names: &[] },
    Values { first: 1, last: 12, names: MONTHS },
    Values { first: 0, last: 6, names: DAYS },
];

/// The permitted values of a field.
struct Values {
    first: u16,
    last: u16,
    names: &'static [&'static str],
}

impl Values {
    fn read(&self, text: &str) -> Option<u16> {
        if let Some(place) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Some(self.first + place as u16);
        }
        let number = text.parse().ok()?;
        // Seven is also Sunday.
        let last = if self.names.len() == DAYS.len() { 7 } else { self.last };
        (self.first..=last).contains(&number).then_some(number)
    }

    /// Lists the values of an item that wraps around; `None` for every other item.
    fn over_the_end(&self, item: &str) -> Option<String> {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (from, to) = range.split_once('-')?;
        let (from, to, step) = (self.read(from)?, self.read(to)?, step.parse::<usize>().ok()?);
        if from <= to || step == 0 {
            return None;
        }
        let values = (from..=self.last).chain(self.first..=to).step_by(step);
        Some(values.map(|value| value.to_string()).collect::<Vec<_>>().join(","))
    }
}

/// Returns the pattern with wrapping ranges written as lists. Invalid items stay unchanged.
pub(super) fn unrolled(fields: &[&str]) -> String {
    let one = |(field, values): (&&str, &Values)| {
        let items = field.split(',').map(|item| values.over_the_end(item).unwrap_or_else(|| item.to_owned()));
        items.collect::<Vec<_>>().join(",")
    };
    fields.iter().zip(&FIELDS).map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str) -> String {
        unrolled(&pattern.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn a_range_over_the_end_is_a_list_and_all_else_stays() {
        assert_eq!(read("50-10/10 22-1 30-2 NOV-2 FRI-MON"), "50,0,10 22,23,0,1 30,31,1,2 11,12,1,2 5,6,0,1");
        assert_eq!(read("0 9 * * 7-2"), "0 9 * * 0,1,2");
        for same in ["0 9-17 * * 1-5", "*/15 * L * MON#1", "5-1/0 61-2 * * *", "a-b 5- -5 */0 1,,2"] {
            assert_eq!(read(same), same);
        }
    }
}
