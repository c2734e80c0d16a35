//! Every figure as CSV: one line for each cell and metric, and one for each fork.

use std::fmt::Write as _;

use super::{METRICS, Results};

const HEADER: &str =
    "study,experiment,variant,subject,stack,client,server,link,levels,metric,unit,fork,value,low,high,forks";

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
            let (id, unit) = (metric.id, metric.unit);
            let end = |end: Option<f64>| end.map_or_else(String::new, |end| end.to_string());
            // Writing to a string cannot fail.
            if let Some(one) = cell.estimate(metric) {
                let (low, high) = (end(one.low), end(one.high));
                let _ = writeln!(text, "{about},{id},{unit},,{},{low},{high},{}", one.mean, one.count);
            }
            for fork in &cell.forks {
                if let Some(value) = (metric.of)(fork) {
                    let _ = writeln!(text, "{about},{id},{unit},{},{value},,,", fork.fork);
                }
            }
        }
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
