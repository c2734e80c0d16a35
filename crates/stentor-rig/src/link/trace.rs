//! Recorded links in Mahimahi's format: each line is a millisecond at which 1500 bytes may leave; after its end the trace repeats.

/// Bytes that may leave at each line.
pub const OPPORTUNITY_BYTES: u64 = 1500;
/// Lines of a trace at most.
pub const LINES_MAX: usize = 4_000_000;
const MILLISECOND_NS: u64 = 1_000_000;

/// The times at which packets could leave a recorded link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds, never falling, the last above zero.
    opportunities_ms: Vec<u64>,
}

/// The reason why a trace cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TraceError {
    /// Not a number of milliseconds.
    #[error("line {0} of the trace is no number of milliseconds")]
    NoNumber(usize),
    /// Time goes back.
    #[error("line {0} of the trace is earlier than the line before it")]
    Backwards(usize),
    /// Nothing ever leaves, or the trace takes no time.
    #[error("the trace has no line after millisecond 0")]
    Empty,
    /// Too many lines.
    #[error("the trace has more than {LINES_MAX} lines")]
    TooLong,
}

impl Trace {
    /// Reads a trace; empty lines are skipped.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut opportunities_ms: Vec<u64> = Vec::new();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        for (index, line) in lines {
            // A day is more than any recording holds, and keeps sums of milliseconds far from their limit.
            let at: u32 = line.trim().parse().map_err(|_| TraceError::NoNumber(index + 1))?;
            let at = u64::from(at);
            if opportunities_ms.last().is_some_and(|last| at < *last) {
                return Err(TraceError::Backwards(index + 1));
            }
            if opportunities_ms.len() == LINES_MAX {
                return Err(TraceError::TooLong);
            }
            opportunities_ms.push(at);
        }
        if opportunities_ms.last().is_none_or(|last| *last == 0) {
            return Err(TraceError::Empty);
        }
        Ok(Self { opportunities_ms })
    }

    fn period_ms(&self) -> u64 {
        self.opportunities_ms.last().copied().unwrap_or(1).max(1)
    }

    /// Returns the time of the opportunity with this number, in nanoseconds from the start. Numbers continue beyond the end of the trace.
    fn at_ns(&self, number: u64) -> u64 {
        let lines = self.opportunities_ms.len() as u64;
        let within = self.opportunities_ms[(number % lines) as usize];
        ((number / lines) * self.period_ms() + within) * MILLISECOND_NS
    }

    /// The number of the first opportunity at or after an instant.
    fn first_from(&self, at_ns: u64) -> u64 {
        let at_ms = at_ns.div_ceil(MILLISECOND_NS);
        let lines = self.opportunities_ms.len() as u64;
        // The end of one round is at the same time the start of the next.
        let round = (at_ms / self.period_ms()).saturating_sub(1);
        let mut number = round * lines;
        loop {
            let start_ms = number / lines * self.period_ms();
            let within = self.opportunities_ms.partition_point(|ms| start_ms + ms < at_ms) as u64;
            if within < lines {
                return number + within;
            }
            number += lines;
        }
    }
}

/// A position in a trace, after the bytes that have left so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    number: u64,
    used_bytes: u64,
}

impl Cursor {
    /// Lets a packet leave that was there at `from_ns`; returns when its last byte has left, in the trace's nanoseconds.
    pub(super) fn leave(&mut self, trace: &Trace, from_ns: u64, bytes: u64) -> u64 {
        if trace.at_ns(self.number) < from_ns {
            // Unused opportunities are lost.
            *self = Self { number: trace.first_from(from_ns), used_bytes: 0 };
        }
        let mut left = bytes;
        loop {
            let free = OPPORTUNITY_BYTES - self.used_bytes;
            let at = trace.at_ns(self.number);
            if left < free {
                self.used_bytes += left;
                return at;
            }
            left -= free;
            *self = Self { number: self.number + 1, used_bytes: 0 };
            if left == 0 {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests;
