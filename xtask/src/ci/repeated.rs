//! Failures, repeated at the end of a log.

use super::failures::StepFailure;

/// Most failures with repeated output; the others are only named.
const REPEATED_MAX_COUNT: usize = 20;
/// Most lines of one failure.
const ONE_MAX_LINES: usize = 60;
/// Fewest lines of one failure: a panic's place and message, and the values of left and right.
const ONE_MIN_LINES: usize = 6;
/// Limit of lines of all failures together: with names and summary they stay within two hundred, a usual limit for kept logs.
const ALL_MAX_LINES: usize = 140;
/// Most names of failures without output.
const NAMED_MAX_COUNT: usize = 20;

/// Returns each failure's name and the most informative part of its output.
pub(crate) fn text(failures: &[StepFailure]) -> String {
    let repeated = &failures[..failures.len().min(REPEATED_MAX_COUNT)];
    let most = (ALL_MAX_LINES / repeated.len().max(1)).clamp(ONE_MIN_LINES, ONE_MAX_LINES);
    let mut lines = vec!["== failures ==".to_owned()];
    for failure in repeated {
        lines.push(format!("-- {}", failure.name));
        lines.extend(excerpt(&failure.lines, most));
    }
    let others = &failures[repeated.len()..];
    lines.extend(others.iter().take(NAMED_MAX_COUNT).map(|failure| format!("-- {}", failure.name)));
    if others.len() > NAMED_MAX_COUNT {
        lines.push(format!("-- and {} more", others.len() - NAMED_MAX_COUNT));
    }
    lines.join("\n")
}

/// Returns at most `most` lines: the last ones, or those from a panic's message on if the last ones would omit it.
fn excerpt(lines: &[String], most: usize) -> Vec<String> {
    let is_blank = |line: &String| line.trim().is_empty();
    let lines: Vec<&String> = lines.iter().filter(|line| !is_blank(line)).collect();
    // Two lines give the numbers of lines left out before and after.
    let most = if lines.len() > most { most - 2 } else { most };
    let last = lines.len().saturating_sub(most);
    let panic = lines.iter().position(|line| line.contains("panicked at "));
    let from = panic.map_or(last, |panic| panic.min(last));
    let shown = &lines[from..lines.len().min(from + most)];
    let mut excerpt = Vec::new();
    if from > 0 {
        excerpt.push(format!("   ({from} lines before)"));
    }
    excerpt.extend(shown.iter().map(|line| format!("   {line}")));
    let after = lines.len() - from - shown.len();
    if after > 0 {
        excerpt.push(format!("   ({after} lines after)"));
    }
    excerpt
}

#[cfg(test)]
mod tests;
