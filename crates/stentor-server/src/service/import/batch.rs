//! Parsed lines that wait to be written, cut into batches that overload neither memory nor the store.

use stentor_core::device::Registration;

use super::report::{ERRORS_MAX_COUNT, ImportProblem};

/// Most bytes of memory of a batch's registrations; plain lines stay below it.
const BATCH_MAX_BYTES: usize = 8 * 1_024 * 1_024;
/// Most rows that a batch writes for users, tags and topics, besides one for each device.
const BATCH_MAX_ROWS: usize = 8_192;
/// Memory of a name on the heap besides its characters: pointer, length, capacity, and overhead of the allocator.
const NAME_BYTES: usize = size_of::<String>() + 16;

/// Valid lines as registrations, invalid lines as problems.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Valid lines.
    pub(super) registrations: Vec<Registration>,
    /// Line number of each registration.
    pub(super) lines: Vec<u64>,
    /// Invalid lines; their number is bounded by that of a report plus one block.
    pub(super) problems: Vec<ImportProblem>,
    weight: Weight,
}

/// The cost of registrations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Weight {
    bytes: usize,
    rows: usize,
}

impl Parsed {
    /// Adds a valid line.
    pub(super) fn push(&mut self, line: u64, registration: Registration) {
        self.weight.add(Weight::of(&registration));
        self.registrations.push(registration);
        self.lines.push(line);
    }

    pub(super) fn line_count(&self) -> u64 {
        (self.registrations.len() + self.problems.len()) as u64
    }

    pub(super) fn append(&mut self, mut other: Self) {
        // Usually the block becomes the batch without a copy.
        if self.lines.is_empty() && self.problems.is_empty() {
            *self = other;
            return;
        }
        self.registrations.append(&mut other.registrations);
        self.lines.append(&mut other.lines);
        self.problems.append(&mut other.problems);
        self.weight.add(other.weight);
    }

    /// Splits off a full batch of the first lines, by whichever limit is reached first; `None` while none is.
    pub(super) fn cut(&mut self, batch_lines: usize) -> Option<Self> {
        let is_full = self.registrations.len() >= batch_lines
            || self.problems.len() >= ERRORS_MAX_COUNT
            || self.weight.is_full();
        is_full.then(|| {
            let (count, weight) = self.fitting(batch_lines);
            let (registrations, lines) = (self.registrations.split_off(count), self.lines.split_off(count));
            let rest = Self { registrations, lines, weight: self.weight.without(weight), ..Self::default() };
            Self { weight, ..std::mem::replace(self, rest) }
        })
    }

    /// Returns the number and weight of the first lines that fit a batch: at least one, if there is any.
    fn fitting(&self, batch_lines: usize) -> (usize, Weight) {
        let mut sum = Weight::default();
        for (count, registration) in self.registrations.iter().enumerate() {
            let mut next = sum;
            next.add(Weight::of(registration));
            // A line that exceeds the limits alone is a batch of its own; otherwise it would never be written.
            if count > 0 && (count >= batch_lines || next.is_over()) {
                return (count, sum);
            }
            sum = next;
        }
        (self.registrations.len(), sum)
    }
}

impl Weight {
    fn of(registration: &Registration) -> Self {
        let Registration { token, former, facts, topics, .. } = registration;
        let former = former.as_ref().map_or(0, |former| former.expose().len());
        let (user, tags) = (&facts.user, &facts.tags);
        let names = tags.iter().map(|tag| tag.as_str().len()).sum::<usize>()
            + topics.iter().map(|topic| topic.as_str().len()).sum::<usize>()
            + user.as_ref().map_or(0, |user| user.as_str().len());
        let bytes = size_of::<Registration>() + token.expose().len() + former + names;
        // Users and topics are looked up, and a row is written to both of their lists.
        let rows = 2 * usize::from(user.is_some()) + tags.len() + 2 * topics.len();
        Self { bytes: bytes + (tags.len() + topics.len()) * NAME_BYTES, rows }
    }

    const fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.rows += other.rows;
    }

    const fn without(self, part: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(part.bytes), rows: self.rows.saturating_sub(part.rows) }
    }

    const fn is_full(self) -> bool {
        self.bytes >= BATCH_MAX_BYTES || self.rows >= BATCH_MAX_ROWS
    }

    const fn is_over(self) -> bool {
        self.bytes > BATCH_MAX_BYTES || self.rows > BATCH_MAX_ROWS
    }
}

#[cfg(test)]
mod tests;
