use super::{exit_for, refusal, segment};
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
