//! Our figures in the long format of the published ones, so that the claims of the study can be judged by them.

use std::fmt::Write as _;

use super::Report;

const HEADER: &str = "paper,source,experiment,subject,factors,metric,stat,value,unit,kind,note,low,high";

/// Writes the rates of the study's tests as lines that `source` names like the paper's table. Durations are only told at
/// full scale: a smaller test takes less time, and claims about a million pushes would be judged wrongly.
#[must_use]
pub fn figures(report: &Report, source: &str) -> String {
    let mut text = format!("{HEADER}\n");
    let is_full = report.provenance["scale"].as_f64() == Some(1.0);
    for one in &report.scenarios {
        let (row, study) = (&one.row, &report.study.id);
        let factors = format!(
            "consumers={};load={};pools={}",
            row.consumers.map_or_else(String::new, |count| count.to_string()),
            row.mix,
            row.pooled
        );
        let Some(rate) = one.rate else { continue };
        let ends = |end: Option<f64>| end.map_or_else(String::new, |end| end.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{study},{source},{},stentor,{factors},throughput,geometric mean,{},push/s,measured,{} runs,{},{}",
            row.id,
            rate.mean,
            rate.count,
            ends(rate.low),
            ends(rate.high)
        );
        if is_full {
            let seconds = row.wall_seconds;
            let _ = writeln!(
                text,
                "{study},{source},{},stentor,{factors},duration,median,{seconds},s,measured,{} runs,,",
                row.id, rate.count
            );
        }
    }
    text
}
