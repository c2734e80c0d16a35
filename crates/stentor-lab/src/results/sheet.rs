//! Every figure as CSV: one line for each cell and metric, and one for each fork; phases are marked that run into another.

use std::fmt::Write as _;

use super::basis::streams;
use super::metric::data_bytes;
use super::phases::{PHASES, estimate};
use super::{CONFIDENCE, METRICS, Results};
use crate::record::phase;
use crate::statistics::{Estimate, Samples};

const HEADER: &str = "study,experiment,variant,subject,stack,client,server,link,levels,metric,unit,fork,value,low,high,forks,note";

/// The metric that is a phase.
const OWD: &str = "owd_p50";
/// The note of a phase that cannot be told from another.
const BLURRED: &str = "overlaps: a half streams";

/// Writes the figures of cells (without a fork) and of forks (without an interval).
#[must_use]
pub fn sheet(results: &Results) -> String {
    let mut text = format!("{HEADER}\n");
    for cell in &results.cells {
        let about = [
            &results.study,
            &cell.experiment,
            &cell.variant,
            &cell.subject,
            &cell.stack,
            &cell.client,
            &cell.server,
            &cell.link,
            &cell.levels_text(),
        ];
        let about = about.map(|field| quoted(field)).join(",");
        for metric in METRICS {
            let note = if metric.id == OWD && streams(cell, phase::OWD) { BLURRED } else { "" };
            let about = format!("{about},{},{}", metric.id, metric.unit);
            line(&mut text, &about, cell.estimate(metric), note);
            for fork in &cell.forks {
                if let Some(value) = (metric.of)(fork) {
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "{about},{},{value},,,,{note}", fork.fork);
                }
            }
        }
        let data: Samples = cell.forks.iter().filter_map(data_bytes).collect();
        line(&mut text, &format!("{about},bytes_data,B"), data.estimate(CONFIDENCE), "");
        for (phase, _) in PHASES {
            let note = if streams(cell, phase) { BLURRED } else { "" };
            line(&mut text, &format!("{about},{phase}_p50,ms"), estimate(cell, phase), note);
        }
    }
    text
}

/// Writes the line of a cell, if it has the figure.
fn line(text: &mut String, about: &str, estimate: Option<Estimate>, note: &str) {
    let end = |end: Option<f64>| end.map_or_else(String::new, |end| end.to_string());
    if let Some(one) = estimate {
        let (low, high) = (end(one.low), end(one.high));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{about},,{},{low},{high},{},{note}", one.mean, one.count);
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
