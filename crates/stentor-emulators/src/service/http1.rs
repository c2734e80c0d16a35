//! HTTP/1.1 for the services that offer it: the same responses, one request after the other.

use super::{EmulatedService, ServiceCall, ServiceReply, WireAnswer, WireTotals};
use crate::faults::Faults;
use crate::policy::Wait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

const HEADER_LIMIT: Duration = Duration::from_secs(60);

/// Serves one connection to its end.
pub(crate) async fn serve<S, IO>(service: Arc<S>, io: IO)
where
    S: EmulatedService,
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    WireTotals::add(&service.context().wire.connections);
    // Requests come one after the other here: the lock is never waited for.
    let session = Mutex::new(service.session());
    let seen = AtomicU64::new(0);
    let (service, session, seen) = (&service, &session, &seen);
    let handler = service_fn(move |request| async move {
        let number = seen.fetch_add(1, Ordering::Relaxed) + 1;
        answer(&**service, session, number, request).await
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT)
        .serve_connection(TokioIo::new(io), handler);
    // A peer that breaks off ends only its own connection.
    let _ = connection.await;
}

/// The connection must be aborted: HTTP/1.1 has no other way to reset a request.
#[derive(Debug, thiserror::Error)]
#[error("reset by policy")]
struct BrokenOff;

async fn answer<S: EmulatedService>(
    service: &S,
    session: &Mutex<S::Session>,
    number: u64,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, BrokenOff> {
    let context = service.context();
    WireTotals::add(&context.wire.requests);
    let (head, body) = request.into_parts();
    let body = Limited::new(body, S::MAX_BODY_BYTES).collect().await.map(|body| body.to_bytes());
    if context.faults.take_reset().is_some() {
        WireTotals::add(&context.wire.resets);
        return Err(BrokenOff);
    }
    // The body was too large or cut off. In the latter case the client does not read the response.
    let body_too_large = body.is_err();
    let body = body.unwrap_or_default();
    // Registered before the policy and the faults are looked at: a release that follows them must not be missed.
    let released = Faults::released(context.faults.watch());
    let judge = context.policy.judge();
    let call = ServiceCall { head: &head, body: &body, body_too_large, number, judge: &judge };
    // Locked for the decision, never over a wait.
    let mut reply = service.answer(&mut session.lock(), call);
    if context.faults.is_stalled() {
        reply.wait = Wait::Released;
    }
    reply.settle_on_arrival(service, &judge);
    until(reply.wait, released).await;
    finish(service, reply)
}

/// Waits until an answer is due.
async fn until(wait: Wait, released: impl Future<Output = ()> + Send) {
    match wait {
        Wait::None => {}
        Wait::For(delay) => tokio::time::sleep(delay).await,
        Wait::Released => released.await,
    }
}

fn finish<S: EmulatedService>(
    service: &S,
    mut reply: ServiceReply,
) -> Result<Response<Full<Bytes>>, BrokenOff> {
    reply.settle(service);
    match reply.answer {
        WireAnswer::Response(response, body) => Ok(response.map(|()| Full::new(body))),
        WireAnswer::Reset(_) => {
            WireTotals::add(&service.context().wire.resets);
            Err(BrokenOff)
        }
    }
}
