//! The two formats of metrics: OpenMetrics 1.0, and the older text format of Prometheus.

use axum::http::{HeaderMap, header};

/// The format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, 0.0.4.
    Text,
}

impl Exposition {
    /// Returns the preferred format of a request: OpenMetrics if it is named, else the text format that every client can read.
    #[must_use]
    pub fn accepted(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let ranges: Vec<(String, f64)> = lines.flat_map(|line| line.split(',')).map(weighed).collect();
        let weight = |name: &str| {
            let named = ranges.iter().filter(|(range, _)| range == name);
            named.map(|(_, weight)| *weight).fold(0.0, f64::max)
        };
        let open = weight("application/openmetrics-text");
        if open > 0.0 && open >= weight("text/plain") { Self::OpenMetrics } else { Self::Text }
    }

    /// Returns its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns OpenMetrics in this format.
    pub(super) fn of(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::Text => text(&open_metrics),
        }
    }
}

/// Reads one media range and its weight.
fn weighed(range: &str) -> (String, f64) {
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (name, weight.map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0)))
}

/// Converts OpenMetrics to the text format: counters are named like their samples, and there is no end mark.
fn text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        match line.split_once(' ').filter(|(mark, _)| *mark == "#").and_then(|(_, rest)| rest.split_once(' '))
        {
            Some(("HELP", description)) => help = description,
            Some(("TYPE", name_and_type)) => {
                let (name, kind) = name_and_type.rsplit_once(' ').unwrap_or((name_and_type, "untyped"));
                let suffix = if kind == "counter" { "_total" } else { "" };
                let kind = if kind == "unknown" { "untyped" } else { kind };
                if let Some((_, words)) = help.split_once(' ') {
                    text.push_str(&format!("# HELP {name}{suffix} {words}\n"));
                }
                text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
            }
            Some(_) => {}
            None if line.starts_with('#') => {}
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_called_in_text_as_its_samples_are_and_the_end_mark_is_left_out() {
        let open = "# HELP a_things Things: # 1\n# TYPE a_things counter\na_things_total{x=\"# y\"} 1\n# HELP g G\n# TYPE g gauge\n\
                    g 2.5\n# EOF\n";
        let expected = "# HELP a_things_total Things: # 1\n# TYPE a_things_total counter\na_things_total{x=\"# y\"} 1\n\
                        # HELP g G\n# TYPE g gauge\ng 2.5\n";
        assert_eq!(text(open), expected);
    }

    #[test]
    fn openmetrics_is_sent_where_it_is_named_and_text_everywhere_else() {
        let accepted = |lines: &[&'static str]| {
            let lines = lines.iter().map(|line| (header::ACCEPT, axum::http::HeaderValue::from_static(line)));
            Exposition::accepted(&lines.collect())
        };
        // The header of Prometheus.
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(accepted(&[prometheus]), Exposition::OpenMetrics);
        assert_eq!(accepted(&["application/openmetrics-text; version=1.0.0"]), Exposition::OpenMetrics);
        for text in [
            "text/plain;version=0.0.4",
            "*/*",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=0.1, text/plain",
        ] {
            assert_eq!(accepted(&[text]), Exposition::Text, "{text}");
        }
        assert_eq!(accepted(&[]), Exposition::Text);
    }
}
