use super::{exit_for, refusal, segment, tls_trouble};
use crate::failure::Exit;
use reqwest::StatusCode;
use serde_json::{Value, json};

#[test]
fn a_name_becomes_one_path_segment() {
    assert_eq!(segment("news-1_a.b~c"), "news-1_a.b~c");
    assert_eq!(segment("a/b c?ü"), "a%2Fb%20c%3F%C3%BC");
}

#[test]
fn a_refusal_says_field_detail_and_hint() {
    let problem = json!({"detail": "is too long", "field": "token", "hint": "at most 4096 bytes", "code": "invalid_field"});
    let failure = refusal(StatusCode::BAD_REQUEST, &problem);
    assert_eq!(failure.to_string(), "token: is too long (at most 4096 bytes)");
    assert_eq!((failure.exit, failure.code.as_deref()), (Exit::NotDone, Some("invalid_field")));
}

#[test]
fn an_answer_that_is_no_problem_is_told_by_its_status() {
    let failure = refusal(StatusCode::IM_A_TEAPOT, &Value::Null);
    assert!(failure.to_string().contains("418"), "{failure}");
}

#[test]
fn a_status_decides_the_exit_code() {
    let exits = [401, 403, 404, 503, 409].map(|code| exit_for(StatusCode::from_u16(code).unwrap()));
    assert_eq!(exits, [Exit::Denied, Exit::Denied, Exit::NotFound, Exit::Unreachable, Exit::NotDone]);
}

#[test]
fn a_failure_of_tls_is_told_as_one_and_not_as_a_server_that_is_not_there() {
    let trouble = |causes: &[&str]| {
        let causes: Vec<String> = causes.iter().map(|cause| (*cause).to_owned()).collect();
        tls_trouble("https://localhost:8443", &causes)
    };
    let unknown = trouble(&[
        "error sending request",
        "client error (Connect)",
        "invalid peer certificate: UnknownIssuer",
    ]);
    let unknown = unknown.expect("a failure of TLS");
    assert!(unknown.starts_with("certificate of https://localhost:8443: UnknownIssuer"), "{unknown}");
    assert!(unknown.contains("--ca"), "{unknown}");
    let other = trouble(&["invalid peer certificate: certificate not valid for name \"a\""])
        .expect("a failure of TLS");
    assert!(!other.contains("--ca") && other.contains("not valid for name"), "{other}");
    assert!(
        trouble(&["received corrupt message of type InvalidContentType"]).expect("told").contains("http://")
    );
    assert_eq!(trouble(&["error sending request", "Connection refused (os error 111)"]), None);
}
