use http::{HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::*;

/// Answers with the parts of the request.
async fn echo(request: Request<Incoming>) -> Result<http::Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let said = |name| head.headers.get(name).map_or("", |value: &HeaderValue| value.to_str().unwrap_or("?"));
    let line = format!("{} {} {} {}", head.method, head.uri, said("x-key"), said("host"));
    let body = body.collect().await?.to_bytes();
    Ok(http::Response::new(Full::new([line.as_bytes(), b" ", &body].concat().into())))
}

#[tokio::test]
async fn calls_go_over_one_connection_with_the_same_headers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let authority = listener.local_addr().expect("an address").to_string();
    let server = async {
        let (stream, _) = listener.accept().await.expect("a connection");
        let service = service_fn(echo);
        let serving =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        serving.await.expect("served");
    };
    let headers =
        HeaderMap::from_iter([(http::HeaderName::from_static("x-key"), HeaderValue::from_static("k"))]);
    let calling = async {
        let mut caller = HttpCaller::connect(&authority, headers).await.expect("connected");
        let first = caller.call(Method::POST, "/a", Bytes::from_static(b"one")).await.expect("answered");
        let second = caller.call(Method::GET, "/b", Bytes::new()).await.expect("answered");
        (first, second)
    };
    let ((first, second), ()) = tokio::join!(calling, server);
    assert_eq!(first, (StatusCode::OK, format!("POST /a k {authority} one").into()));
    assert_eq!(second, (StatusCode::OK, format!("GET /b k {authority} ").into()));
}

#[tokio::test]
async fn a_closed_port_is_named() {
    let port =
        TcpListener::bind("127.0.0.1:0").await.expect("bound").local_addr().expect("an address").port();
    let error =
        HttpCaller::connect(&format!("127.0.0.1:{port}"), HeaderMap::new()).await.expect_err("nobody there");
    assert!(error.to_string().starts_with(&format!("no server answers at 127.0.0.1:{port}")), "{error}");
}

#[test]
fn a_head_is_read_only_once_it_is_whole() {
    let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n\r\nabc";
    let head = read_head(whole).expect("fine").expect("whole");
    assert_eq!((head.status, head.bytes, head.body_bytes), (StatusCode::ACCEPTED, 44, 3));
    for end in 0..head.bytes {
        assert!(read_head(&whole[..end]).expect("fine so far").is_none(), "{end}");
    }
}

#[test]
fn an_answer_of_any_length_that_can_be_written_is_no_panic() {
    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", usize::MAX);
    assert!(matches!(read_head(text.as_bytes()), Err(CallerError::Answer(_))));
}

#[test]
fn an_answer_that_is_no_http_or_of_unknown_length_is_refused() {
    for text in
        ["hello there, this is no HTTP\r\n\r\n", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
    {
        assert!(matches!(read_head(text.as_bytes()), Err(CallerError::Answer(_))), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn whatever_is_answered_a_head_is_whole_or_refused_and_never_promises_more_than_is_read(
        status in "[0-9]{0,4}",
        length in "-?[0-9]{0,22}|[a-z ]{0,5}",
        rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        cut in 0_usize..300,
    ) {
        let mut answer = format!("HTTP/1.1 {status} \r\ncontent-length:{length}\r\n\r\n").into_bytes();
        answer.extend(&rest);
        for bytes in [&answer[..cut.min(answer.len())], &answer, &rest] {
            if let Ok(Some(head)) = read_head(bytes) {
                proptest::prop_assert!(head.bytes <= bytes.len() && head.body_bytes <= ANSWER_MAX_BYTES);
            }
        }
    }
}
