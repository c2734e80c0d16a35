//! Spans on their way to a collector of OpenTelemetry, by OTLP over HTTP.
//!
//! A thread of its own sends them in batches. Its queue is bounded: spans that find no place are dropped, and no request waits for one.

use std::time::Duration;

use anyhow::Context;
use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind as OtelKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor};
use std::sync::Arc;
use stentor_server::config::TraceConfig;
use stentor_server::trace::{self, EndedSpan, SpanKind, SpanPlace, SpanSink, SpanValue};

/// Time that an ending process allows for its last spans.
const LAST_SPANS_MAX: Duration = Duration::from_secs(2);
/// Time for one request to the collector.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// The export of this process, which sends the last spans when it is dropped.
pub(crate) struct SpanExport(Arc<BatchSpanProcessor>);

impl Drop for SpanExport {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST_SPANS_MAX) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// Starts to export spans if there is a collector.
pub(crate) fn start(config: &TraceConfig) -> anyhow::Result<Option<SpanExport>> {
    if config.endpoint.is_empty() {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
    let exporter = exporter.with_endpoint(&config.endpoint).with_timeout(REQUEST_MAX).build();
    let exporter = exporter.context("trace.endpoint cannot be used")?;
    let mut processor = BatchSpanProcessor::builder(exporter).build();
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    processor.set_resource(&Resource::builder().with_service_name("stentor").with_attribute(version).build());
    let processor = Arc::new(processor);
    trace::begin(config.sampled_percent / 100.0, Box::new(OtlpSink(Arc::clone(&processor))));
    Ok(Some(SpanExport(processor)))
}

struct OtlpSink(Arc<BatchSpanProcessor>);

impl SpanSink for OtlpSink {
    fn take(&self, span: EndedSpan) {
        self.0.on_end(span_data(span));
    }
}

fn span_data(span: EndedSpan) -> SpanData {
    let mut links = SpanLinks::default();
    links.links.extend(span.link.map(|place| Link::with_context(context(place))));
    let attributes = span.attributes.into_iter().map(|(name, value)| KeyValue::new(name, to_value(value)));
    SpanData {
        span_context: context(span.place),
        parent_span_id: span.parent.map_or(SpanId::INVALID, to_id),
        parent_span_is_remote: span.parent.is_some(),
        span_kind: match span.kind {
            SpanKind::Server => OtelKind::Server,
            SpanKind::Internal => OtelKind::Internal,
            SpanKind::Client => OtelKind::Client,
        },
        name: span.name.into(),
        start_time: span.began,
        end_time: span.ended,
        attributes: attributes.collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links,
        status: if span.failed { Status::error("") } else { Status::Unset },
        instrumentation_scope: InstrumentationScope::builder("stentor").build(),
    }
}

fn context(place: SpanPlace) -> SpanContext {
    let trace = TraceId::from_bytes(place.trace.to_be_bytes());
    SpanContext::new(trace, to_id(place.span), TraceFlags::SAMPLED, false, TraceState::NONE)
}

fn to_id(number: u64) -> SpanId {
    SpanId::from_bytes(number.to_be_bytes())
}

fn to_value(value: SpanValue) -> Value {
    match value {
        SpanValue::Text(text) => text.into(),
        SpanValue::Number(number) => number.into(),
    }
}
