use super::*;

const PLATFORMS: &str = "expected one of `android`, `apple`, `ios`, `web`";

fn hint(problem: &Problem) -> &str {
    problem.hint.as_deref().unwrap_or_default()
}

#[test]
fn a_refused_word_is_answered_with_the_nearest_and_with_all_that_would_be_right() {
    let near = of_text("platform", &format!("unknown variant `Androis`, {PLATFORMS}"));
    assert_eq!((near.field.as_deref(), near.detail.as_ref()), (Some("platform"), "unknown value `Androis`"));
    assert_eq!(hint(&near), "did you mean `android`? known are android, apple, ios, web");
    let far = of_text("platform", &format!("unknown variant `huawei`, {PLATFORMS}"));
    assert_eq!(hint(&far), "known are android, apple, ios, web");
}

#[test]
fn an_unknown_text_may_hold_any_character() {
    for wrong in ["", "`", "a`, expected one of `b`", "`, `"] {
        let word = of_text("platform", &format!("unknown variant `{wrong}`, {PLATFORMS}"));
        assert_eq!(word.detail, format!("unknown value `{wrong}`"));
        assert!(hint(&word).ends_with("known are android, apple, ios, web"), "{word:?}");
        let field = of_text("", &format!("unknown field `{wrong}`, expected `a` or `b`"));
        assert_eq!(field.detail, format!("unknown field `{wrong}`"));
    }
    assert_eq!(of_text("", "unknown field `x`, there are no fields").detail, "unknown field `x`");
}

#[test]
fn a_long_word_is_not_repeated_to_its_end() {
    let long = of_text("platform", &format!("unknown variant `{}`, {PLATFORMS}", "ä".repeat(10_000)));
    assert!(long.detail.len() < 300, "{} bytes", long.detail.len());
}
