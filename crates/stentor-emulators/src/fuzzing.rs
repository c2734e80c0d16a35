//! Whole emulators without ports, for fuzzing: requests and connections go in as they are.

use crate::error::EmulatorError;
use crate::service::{Answer, Call, Reply, Service};
use crate::{ApnsConfig, FcmConfig, apns, connection, fcm};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use std::sync::Arc;
use tokio::io::DuplexStream;

type Answers = dyn Fn(Request<&[u8]>) -> Option<Response<Bytes>> + Send + Sync;
type Serves = dyn Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync;

/// An emulator that answers what it is handed.
pub struct Front {
    answer: Box<Answers>,
    serve: Box<Serves>,
}

impl Front {
    /// Builds FCM. Fails as the emulator's start does.
    pub fn fcm(config: FcmConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(fcm::build(config)?.1))
    }

    /// Builds APNs. Fails as the emulator's start does.
    pub fn apns(config: ApnsConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(apns::build(config)?.1))
    }

    fn new<S: Service>(service: Arc<S>) -> Self {
        let connections = Arc::clone(&service);
        Self {
            answer: Box::new(move |request| answer(&*service, request)),
            serve: Box::new(move |io| Box::pin(connection::serve(Arc::clone(&connections), io))),
        }
    }

    /// Answers one request on a connection of its own, at once; `None` is a reset.
    pub fn answer(&self, request: Request<&[u8]>) -> Option<Response<Bytes>> {
        (self.answer)(request)
    }

    /// Serves an HTTP/2 connection to its end.
    pub async fn serve(&self, io: DuplexStream) {
        (self.serve)(io).await;
    }
}

fn answer<S: Service>(service: &S, request: Request<&[u8]>) -> Option<Response<Bytes>> {
    let (head, body) = request.into_parts();
    let body_too_large = body.len() > S::MAX_BODY_BYTES;
    let body = if body_too_large { &[] } else { body };
    let judge = service.desk().policy.judge();
    let call = Call { head: &head, body, body_too_large, number: 1, judge: &judge };
    let mut reply: Reply = service.answer(&mut service.session(), call);
    reply.settle(service);
    match reply.answer {
        Answer::Response(response, body) => Some(response.map(|()| body)),
        Answer::Reset(_) => None,
    }
}
