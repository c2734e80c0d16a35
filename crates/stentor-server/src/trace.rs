//! Traces: spans of requests and campaigns for a collector. Each trace is sampled as a whole.
//!
//! A request belongs to the trace of its caller, who names it in `traceparent` (W3C Trace Context, level 1), or begins one. The trace of a
//! campaign follows from its id: all servers add their spans to it and sample the same campaigns. It begins with a span of its acceptance,
//! which is linked to the request, and has a span for each attempt of a chunk.

mod parent;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::time::SystemTime;

use axum::http::{HeaderMap, StatusCode};
use stentor_core::device::ProviderKind;
use stentor_core::id::{CampaignId, MessageId};

use self::parent::Parent;
use crate::clock::machine_time;

/// A span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanPlace {
    /// The trace; never 0.
    pub trace: u128,
    /// The span; never 0.
    pub span: u64,
}

/// Who waits for a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A caller of this server.
    Server,
    /// Nobody: the work goes on by itself.
    Internal,
    /// This server, for a push service.
    Client,
}

/// An attribute's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    /// A text of the server's own, or an id.
    Text(String),
    /// A number.
    Number(i64),
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSpan {
    /// Its place.
    pub place: SpanPlace,
    /// The span above it in its trace.
    pub parent: Option<u64>,
    /// A span of another trace from which this one follows.
    pub link: Option<SpanPlace>,
    /// Its name: few different ones.
    pub name: String,
    /// Who waits for it.
    pub kind: SpanKind,
    /// Time of its begin.
    pub began: SystemTime,
    /// Time of its end.
    pub ended: SystemTime,
    /// What it was about, without contents and tokens.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// True if the server failed.
    pub failed: bool,
}

/// Takes spans towards a collector; never waits, and may drop them.
pub trait SpanSink: Send + Sync {
    /// Takes a span.
    fn take(&self, span: EndedSpan);
}

/// The traces of this process.
struct Traces {
    sampled_share: f64,
    sink: Box<dyn SpanSink>,
}

static TRACES: OnceLock<Traces> = OnceLock::new();

tokio::task_local! {
    /// The sampled request that a task serves.
    static REQUEST: SpanPlace;
}

/// Begins to trace, once in a process; `sampled_share` is from 0 to 1.
pub fn begin(sampled_share: f64, sink: Box<dyn SpanSink>) {
    let _ = TRACES.set(Traces { sampled_share, sink });
}

/// A sampled span that goes on.
pub(crate) struct OpenSpan {
    traces: &'static Traces,
    place: SpanPlace,
    parent: Option<u64>,
    began: SystemTime,
}

impl OpenSpan {
    /// Opens the span of a request, if the caller or this server samples it.
    pub(crate) fn of_request(headers: &HeaderMap) -> Option<Self> {
        let traces = TRACES.get()?;
        let parent = Parent::of(headers);
        let trace = parent.as_ref().map_or_else(rand::random, |parent| parent.place.trace);
        let is_sampled = parent
            .as_ref()
            .map_or_else(|| is_sampled(trace, traces.sampled_share), |parent| parent.is_sampled);
        is_sampled.then(|| Self::open(traces, trace, parent.map(|parent| parent.place.span)))
    }

    /// Opens a span of a campaign below that of its acceptance, if the campaign is sampled.
    pub(crate) fn of_campaign(message: MessageId) -> Option<Self> {
        let traces = TRACES.get()?;
        let root = campaign(message.into());
        is_sampled(root.trace, traces.sampled_share).then(|| Self::open(traces, root.trace, Some(root.span)))
    }

    fn open(traces: &'static Traces, trace: u128, parent: Option<u64>) -> Self {
        let place = SpanPlace { trace: trace.max(1), span: rand::random_range(1..=u64::MAX) };
        Self { traces, place, parent, began: machine_time() }
    }

    /// Lets the campaigns that a request begins link to it.
    pub(crate) async fn scope<T>(span: Option<&Self>, work: impl Future<Output = T>) -> T {
        match span {
            Some(span) => REQUEST.scope(span.place, work).await,
            None => work.await,
        }
    }

    /// Ends the span of a request. Names of attributes are those of OpenTelemetry's conventions for HTTP.
    pub(crate) fn end_request(self, request_id: &str, method: &'static str, route: &str, status: StatusCode) {
        let attributes = vec![
            ("http.request.method", SpanValue::Text(method.to_owned())),
            ("http.route", SpanValue::Text(route.to_owned())),
            ("http.response.status_code", SpanValue::Number(status.as_u16().into())),
            ("stentor.request", SpanValue::Text(request_id.to_owned())),
        ];
        self.end(format!("{method} {route}"), SpanKind::Server, attributes, status.is_server_error());
    }

    /// Ends the span of an attempt to send a chunk.
    pub(crate) fn end_attempt(
        self,
        message: MessageId,
        provider: ProviderKind,
        devices: usize,
        answered: u32,
    ) {
        let devices = i64::try_from(devices).unwrap_or(i64::MAX);
        let attributes = vec![
            ("stentor.campaign", SpanValue::Text(CampaignId::from(message).to_string())),
            ("stentor.provider", SpanValue::Text(provider.to_string())),
            ("stentor.devices", SpanValue::Number(devices)),
            ("stentor.answered", SpanValue::Number(answered.into())),
        ];
        self.end(format!("send {provider}"), SpanKind::Client, attributes, false);
    }

    fn end(self, name: String, kind: SpanKind, attributes: Vec<(&'static str, SpanValue)>, failed: bool) {
        let Self { traces, place, parent, began } = self;
        let ended = machine_time();
        let span = EndedSpan { place, parent, link: None, name, kind, began, ended, attributes, failed };
        traces.sink.take(span);
    }
}

/// Notes that a campaign was accepted: the first span of its trace.
pub(crate) fn accepted(message: MessageId) {
    let Some(traces) = TRACES.get() else { return };
    let id = CampaignId::from(message);
    let place = campaign(id);
    if is_sampled(place.trace, traces.sampled_share) {
        let now = machine_time();
        traces.sink.take(EndedSpan {
            place,
            parent: None,
            link: REQUEST.try_with(|place| *place).ok(),
            name: "campaign".to_owned(),
            kind: SpanKind::Internal,
            began: now,
            ended: now,
            attributes: vec![("stentor.campaign", SpanValue::Text(id.to_string()))],
            failed: false,
        });
    }
}

/// Returns the place of the first span of a campaign, which follows from its id.
fn campaign(id: CampaignId) -> SpanPlace {
    let hash = blake3::hash(id.to_string().as_bytes());
    let mut bytes = [0; 24];
    bytes.copy_from_slice(&hash.as_bytes()[..24]);
    let (trace, span) = bytes.split_at(16);
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
    SpanPlace { trace: number(trace).max(1), span: (number(span) as u64).max(1) }
}

/// Decides by the last 56 bits of the trace, which W3C Trace Context (level 2) makes random.
fn is_sampled(trace: u128, share: f64) -> bool {
    const BITS: u32 = 56;
    let place = (trace & ((1 << BITS) - 1)) as f64;
    place < share * (1_u64 << BITS) as f64
}
