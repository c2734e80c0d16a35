//! One HTML page without scripts, fonts or anything else from elsewhere.

use serde_json::Value;

use super::{Judged, Report, Row, draw};

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}\
    table{border-collapse:collapse;margin:1em 0;font-size:13px}td,th{padding:.25em .6em;border-bottom:1px solid #ddd;\
    text-align:right}td:first-child,th:first-child,td.text{text-align:left}svg{width:100%;height:auto}\
    pre{background:#f5f5f5;padding:1em;overflow:auto}.bad{color:#b00020;font-weight:bold}";

/// Writes the page of a report.
#[must_use]
pub fn page(report: &Report) -> String {
    let study = &report.study;
    let title = escape(&study.id);
    let parts = [
        format!(
            "<h1>{title}, run again</h1>\n<p>{}: <cite>{}</cite> ({}).</p>",
            escape(&study.authors),
            escape(&study.title),
            study.year
        ),
        section("Pushes per second", &(draw(&report.rows) + &rates(&report.rows))),
        section("What was claimed", &claims(&report.judged())),
        section("Little's law", &little(report)),
        section("Proof and cost", &costs(&report.rows)),
        beyond(&report.beyond),
        section("Differences from the paper", &list(study.differences.iter().map(|one| one.text.clone()))),
        section("Threats", &list(study.threats.iter().map(|one| one.text.clone()))),
        section("Remarks on the published figures", &list(remarks(report))),
        section("Where and how this was measured", &provenance(&report.provenance)),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style></head><body>\n{}\n</body></html>\n",
        parts.join("\n")
    )
}

/// Makes text harmless in HTML and SVG.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn section(title: &str, content: &str) -> String {
    format!("<h2>{}</h2>\n{content}", escape(title))
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{}</li>\n", escape(&item))).collect();
    format!("<ul>\n{items}</ul>")
}

fn table<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.map(|row| line("td", &row)).collect();
    format!("<table>\n{}{rows}</table>", line("th", &header.map(str::to_owned)))
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn consumers(row: &Row) -> String {
    row.consumers.map_or_else(|| "adaptive".to_owned(), |count| count.to_string())
}

fn rates(rows: &[Row]) -> String {
    let header = [
        "test",
        "mix",
        "in flight each",
        "pools",
        "pushes",
        "seconds",
        "pushes/s",
        "middle half",
        "published",
        "ratio",
    ];
    table(
        header,
        rows.iter().map(|row| {
            [
                row.id.clone(),
                row.mix.clone(),
                consumers(row),
                if row.pooled { "yes" } else { "no" }.to_owned(),
                row.pushes.to_string(),
                format!("{:.2}", row.wall_seconds),
                format!("{:.1}", row.pushes_per_second),
                number(row.middle_pushes_per_second, 1),
                number(row.published_pushes_per_second, 0),
                number(row.ratio, 2),
            ]
        }),
    )
}

fn claims(judged: &[Judged]) -> String {
    let rows = judged
        .iter()
        .map(|one| [one.claim.text.clone(), one.published.word().to_owned(), one.ours.word().to_owned()]);
    table(["claim", "by the paper's figures", "by ours"], rows)
}

fn little(report: &Report) -> String {
    let latency = report.rows.first().map_or(0.0, |row| row.latency_mean_ms);
    let header = [
        "test",
        "in flight in all",
        "bound, pushes/s",
        "measured",
        "share of bound",
        "held, ms",
        "held in the paper, ms",
    ];
    let rows = report.rows.iter().map(|row| {
        let scenario = report.study.scenarios.iter().find(|scenario| scenario.id == row.id);
        [
            row.id.clone(),
            scenario.map_or_else(String::new, |scenario| scenario.inflight_requests().to_string()),
            number(row.bound_pushes_per_second, 0),
            format!("{:.1}", row.pushes_per_second),
            number(row.share_of_bound, 2),
            number(row.held_ms, 1),
            number(row.published_held_ms, 1),
        ]
    });
    format!(
        "<p>So many requests in flight, each answered after {latency:.1} ms on average, allow no more than the bound. \
         Time held is requests in flight over the rate: where it grows with the consumers while the rate does not, \
         something other than the push service holds the rate.</p>\n{}",
        table(header, rows)
    )
}

fn costs(rows: &[Row]) -> String {
    let header = [
        "test",
        "lost",
        "stuck",
        "duplicates",
        "attempts",
        "books balance",
        "known devices reached",
        "saves",
        "p50 s",
        "p95 s",
        "p99 s",
        "most in flight",
        "connections at once",
        "opened",
        "server CPU s",
        "server MiB",
    ];
    table(
        header,
        rows.iter().map(|row| {
            let [reached, listened] = row.known_devices_reached;
            [
                row.id.clone(),
                row.lost.to_string(),
                row.stuck.to_string(),
                row.duplicates.to_string(),
                row.attempts.to_string(),
                if row.ledger_balanced { "yes" } else { "NO" }.to_owned(),
                format!("{reached} of {listened}"),
                format!("{}, {} refused", row.saves, row.saves_failed),
                number(row.p50_seconds, 2),
                number(row.p95_seconds, 2),
                number(row.p99_seconds, 2),
                row.inflight_max.to_string(),
                row.connections_max.to_string(),
                row.connections_opened.to_string(),
                format!("{:.2}", row.server_cpu_seconds),
                (row.server_peak_rss_bytes >> 20).to_string(),
            ]
        }),
    )
}

fn beyond(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let header =
        ["run", "mix", "in flight each", "latency, ms", "pushes", "pushes/s", "bound", "fairness", "note"];
    let told = rows.iter().map(|row| {
        [
            row.id.clone(),
            row.mix.clone(),
            consumers(row),
            format!("{:.1}", row.latency_mean_ms),
            row.pushes.to_string(),
            format!("{:.1}", row.pushes_per_second),
            number(row.bound_pushes_per_second, 0),
            number(row.fairness, 3),
            row.note.clone(),
        ]
    });
    let tables = table(header, told) + &costs(rows);
    section("Beyond the paper", &(draw(rows) + &tables))
}

fn remarks(report: &Report) -> impl Iterator<Item = String> {
    let told = report.published.remarks();
    told.map(|figure| {
        format!(
            "{}, {} {} = {}: {}",
            figure.source, figure.experiment, figure.metric, figure.value, figure.note
        )
    })
}

fn provenance(facts: &Value) -> String {
    let facts = facts.as_object().into_iter().flatten();
    let rows = facts.map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        [name.clone(), value]
    });
    table(["what", "value"], rows)
}
