//! HTTP: REST, SOAP and XML-RPC over version 1.1, gRPC over version 2.

use super::super::dialect::ValueFormat;
use super::super::grpc;
use super::{Question, ServerWork};
use crate::subject::setup::Stream;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use stentor_wire::DocumentLimits;

type SubjectAnswer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Serves one client over HTTP/1.1 until it hangs up.
pub(super) async fn speak_http(stream: Stream, work: ServerWork) {
    let service = service_fn(|request| {
        let work = work.clone();
        async move { Ok::<_, Infallible>(respond(request, &work).await) }
    });
    // A client that breaks off is no error of the server.
    let _ =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// Serves one client over gRPC until it hangs up.
pub(super) async fn speak_grpc(stream: Stream, work: ServerWork) {
    let service = service_fn(|request| {
        let work = work.clone();
        async move { Ok::<_, Infallible>(call(request, &work).await) }
    });
    let builder = http2::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(request: Request<Incoming>, work: &ServerWork) -> SubjectAnswer {
    if request.method() == Method::GET {
        let prefix = format!("/{}/", work.op.word());
        let path = request.uri().path().to_owned();
        if let Some(payload) = path.strip_prefix(&prefix).filter(|_| work.dialect.format == ValueFormat::Json)
        {
            return answered(work, Question::Url(payload)).await;
        }
        return match work.description(request.headers().get(HOST)) {
            Some(Ok(description)) => response(StatusCode::OK, description, work),
            Some(Err(error)) => {
                response(StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into_bytes(), work)
            }
            None => response(StatusCode::METHOD_NOT_ALLOWED, Vec::new(), work),
        };
    }
    let limit = DocumentLimits::default().document_max_bytes;
    let Ok(body) = Limited::new(request.into_body(), limit).collect().await else {
        return response(StatusCode::PAYLOAD_TOO_LARGE, Vec::new(), work);
    };
    answered(work, Question::Body(&body.to_bytes())).await
}

async fn answered(work: &ServerWork, question: Question<'_>) -> SubjectAnswer {
    let Some(answer) = work.answer(question) else { return std::future::pending().await };
    match answer {
        Ok(bytes) => response(StatusCode::OK, bytes, work),
        // XML-RPC reports faults with status 200; SOAP 1.1 requires 500.
        Err(bytes) if work.dialect.format == ValueFormat::XmlRpc => response(StatusCode::OK, bytes, work),
        Err(bytes) if bytes.is_empty() => response(StatusCode::BAD_REQUEST, bytes, work),
        Err(bytes) => response(StatusCode::INTERNAL_SERVER_ERROR, bytes, work),
    }
}

fn response(status: StatusCode, bytes: Vec<u8>, work: &ServerWork) -> SubjectAnswer {
    let mut response = Response::new(Full::new(bytes.into()).boxed_unsync());
    *response.status_mut() = status;
    if let Ok(kind) = work.dialect.content_type(work.op).parse() {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    response
}

async fn call(request: Request<Incoming>, work: &ServerWork) -> SubjectAnswer {
    let limit = DocumentLimits::default().document_max_bytes;
    let is_ours = request.uri().path() == grpc::path(work.op);
    let body = Limited::new(request.into_body(), limit).collect().await.ok();
    let message = body.filter(|_| is_ours).and_then(|body| grpc::unframe(body.to_bytes()).ok());
    let Some(message) = message else { return refusal(grpc::INVALID_ARGUMENT) };
    let Some(answer) = work.answer(Question::Body(&message)) else { return std::future::pending().await };
    let Ok(answer) = answer else { return refusal(grpc::INVALID_ARGUMENT) };
    let Ok(framed) = grpc::frame(&answer) else { return refusal(grpc::INTERNAL) };
    let mut trailers = HeaderMap::new();
    trailers.insert(grpc::STATUS, HeaderValue::from_static("0"));
    let body = Full::new(framed).with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(grpc::CONTENT_TYPE));
    response
}

/// Returns a refusal: the status is among the headers, and there is no message.
fn refusal(status: &'static str) -> SubjectAnswer {
    let mut response = Response::new(Full::default().boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(grpc::CONTENT_TYPE));
    headers.insert(grpc::STATUS, HeaderValue::from_static(status));
    response
}
