//! The answer at addresses that do not exist.

use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};

use super::grpc;
use super::http::middleware::no_such_address;
use super::http::refusal::Refusal;

/// Answers what is asked where there is nothing, calls of gRPC in their own form.
pub(super) async fn answer_nowhere(headers: HeaderMap) -> Response {
    match grpc::is_call(&headers) {
        true => grpc::no_such_service(),
        false => Refusal(no_such_address()).into_response(),
    }
}
