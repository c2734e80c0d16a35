//! Settings of the traces.

use serde::Deserialize;

/// Settings of the traces.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceConfig {
    /// URL of the collector; empty for none.
    pub endpoint: String,
    /// Share of the requests and campaigns that are traced.
    pub sampled_percent: f64,
}

impl TraceConfig {
    pub(super) fn problem(&self) -> Option<String> {
        let is_http = ["http://", "https://"].iter().any(|scheme| self.endpoint.starts_with(scheme));
        if !self.endpoint.is_empty() && !is_http {
            return Some("trace.endpoint is no URL: for instance http://127.0.0.1:4318/v1/traces".to_owned());
        }
        let is_share = (0.0..=100.0).contains(&self.sampled_percent);
        (!is_share).then(|| "trace.sampled_percent is from 0 to 100".to_owned())
    }
}
