//! Answers requests as they come off the frames.

use super::log::SinkLogWriter;
use super::request::{GRANT, NO_TARGET, Route, SinkTarget, apns_id, write_message_name};
use crate::dice::{RequestRng, mix};
use crate::frames::{Admission, EncodedAnswer, Field, HeaderKind, Host, RequestBody, When};
use crate::observer::{AnswerTally, CountBatch};
use crate::policy::AnswerLatency;
use crate::service::{EmulatorContext, WireTotals};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stentor_http2_codec::frame::ErrorCode;
use tokio::time::Instant;

/// The longest `apns-id` that is echoed, in bytes; a valid one has 36.
const MAX_APNS_ID_BYTES: usize = 256;

/// One connection's face of a sink.
pub(crate) struct SinkHost {
    context: Arc<EmulatorContext>,
    latency: Option<AnswerLatency>,
    batch: Option<CountBatch>,
    now: Instant,
    requests: u64,
    counted: u64,
    first_id: u64,
    log: Option<Arc<SinkLogWriter>>,
    /// Tokens with a response to be logged.
    noted: Vec<Vec<u8>>,
}

/// The state of a request while it is read.
#[derive(Default)]
pub(crate) struct SinkDraft {
    route: Route,
    project: Vec<u8>,
    apns_id: Vec<u8>,
    /// Empty if the response is not logged.
    token: Vec<u8>,
}

impl SinkHost {
    pub(super) fn new(context: Arc<EmulatorContext>, log: Option<Arc<SinkLogWriter>>) -> Self {
        let latency = context.policy.judge().policy.latency.clone();
        let batch = context.observer.as_ref().map(|observer| observer.batch());
        let first_id = uuid::Uuid::new_v4().as_u64_pair().1;
        Self {
            context,
            latency,
            batch,
            now: Instant::now(),
            requests: 0,
            counted: 0,
            first_id,
            log,
            noted: Vec::new(),
        }
    }

    fn next_id(&mut self) -> u64 {
        mix(self.first_id.wrapping_add(self.requests))
    }

    fn count(&mut self, token_hash: u64) {
        if let Some(batch) = &mut self.batch {
            batch.push(token_hash);
        }
    }

    fn answer_apns(&mut self, draft: &SinkDraft, answer: &mut EncodedAnswer) {
        if !draft.token.is_empty() {
            self.noted.push(draft.token.clone());
        }
        answer.status(200);
        if draft.apns_id.is_empty() {
            let id = self.next_id();
            answer.field(b"apns-id", &apns_id(id, mix(id)));
        } else {
            answer.field(b"apns-id", &draft.apns_id);
        }
    }

    fn answer_fcm(&mut self, draft: &SinkDraft, body: RequestBody<'_>, answer: &mut EncodedAnswer) {
        let target = match body {
            RequestBody::Whole(body) => SinkTarget::of(body),
            RequestBody::TooLarge => SinkTarget::Nobody,
        };
        answer.status(if target == SinkTarget::Nobody { 400 } else { 200 });
        answer.field(b"content-type", b"application/json");
        match target {
            SinkTarget::Nobody => answer.body().extend_from_slice(NO_TARGET),
            SinkTarget::Device(_) | SinkTarget::Uncounted => {
                let id = self.next_id();
                write_message_name(answer.body(), &draft.project, id);
            }
        }
        if let SinkTarget::Device(token_hash) = target {
            self.count(token_hash);
        }
    }

    fn when(&self) -> When {
        let Some(latency) = &self.latency else { return When::Now };
        let delay = latency.draw(&mut RequestRng::new(self.first_id, self.requests, 0));
        if delay.is_zero() { When::Now } else { When::At(self.now + delay) }
    }
}

impl Host for SinkHost {
    type Draft = SinkDraft;
    type Waiting = ();

    const MAX_BODY_BYTES: usize = 64 * 1024;

    fn begin_batch(&mut self, now: Instant) {
        self.now = now;
    }

    fn admit(&mut self, draft: &mut SinkDraft, in_excess: bool) -> Admission {
        if in_excess {
            WireTotals::add(&self.context.wire.refused);
            return Admission::Reset(ErrorCode::REFUSED_STREAM);
        }
        draft.route = Route::Other;
        draft.apns_id.clear();
        draft.token.clear();
        Admission::Take
    }

    fn field(&mut self, draft: &mut SinkDraft, field: &Field<'_>) {
        match field.kind {
            HeaderKind::Path => {
                draft.route = Route::of(field.value, &mut draft.project);
                if let Some(token) = self.log.as_ref().and_then(|log| log.wanted(field.value)) {
                    draft.token.extend_from_slice(token);
                }
            }
            HeaderKind::ApnsId if field.value.len() <= MAX_APNS_ID_BYTES => {
                draft.apns_id.clear();
                draft.apns_id.extend_from_slice(field.value);
            }
            _ => {}
        }
    }

    fn answer(&mut self, draft: &mut SinkDraft, body: RequestBody<'_>, answer: &mut EncodedAnswer) -> When {
        self.requests += 1;
        match draft.route {
            Route::Apns { token_hash } => {
                self.count(token_hash);
                self.answer_apns(draft, answer);
            }
            Route::Fcm => self.answer_fcm(draft, body, answer),
            Route::Grant => {
                answer.status(200);
                answer.field(b"content-type", b"application/json");
                answer.body().extend_from_slice(GRANT);
            }
            Route::Other => answer.status(200),
        }
        self.when()
    }

    fn waits(&mut self, _draft: &mut SinkDraft) {}

    fn leaves(&mut self, (): ()) {}

    fn end_batch(&mut self) {
        self.context.wire.requests.fetch_add(self.requests - self.counted, Ordering::Relaxed);
        self.counted = self.requests;
        // Before any response of this read is written: a client that has read one finds it counted.
        if let (Some(batch), Some(observer)) = (&mut self.batch, &self.context.observer) {
            observer.settle_batch(batch, AnswerTally::Accepted);
        }
        if let Some(log) = &self.log {
            log.note(&mut self.noted);
        }
    }
}
