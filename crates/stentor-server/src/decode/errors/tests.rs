use serde::Deserialize;

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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is decoded, and nothing of it is read")]
struct Given {
    inner: Inner,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is decoded, and nothing of it is read")]
struct Inner {
    word: Word,
    number: u8,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Android,
    Apple,
}

fn refused(inner: &str) -> (String, String, Option<String>) {
    let text = format!("{{\"inner\": {inner}}}");
    let mut reader = serde_json::Deserializer::from_str(&text);
    let error = serde_path_to_error::deserialize::<_, Given>(&mut reader).expect_err(inner);
    let problem = of_json(&error.path().to_string(), error.inner());
    (problem.field.unwrap_or_default(), problem.detail.into_owned(), problem.hint.map(Into::into))
}

#[test]
fn serde_still_words_its_errors_as_they_are_taken_apart_here() {
    let problem = |field: &str, detail: &str, hint: Option<&str>| {
        (field.to_owned(), detail.to_owned(), hint.map(str::to_owned))
    };
    let cases = [
        (
            r#"{"word": "apple", "number": 1, "numbr": 2}"#,
            problem("inner.numbr", "unknown field `numbr`", Some("did you mean `number`?")),
        ),
        (
            r#"{"word": "zzz", "number": 1}"#,
            problem("inner.word", "unknown value `zzz`", Some("known are android, apple")),
        ),
        (r#"{"word": "apple"}"#, problem("inner.number", "is missing", None)),
        (r#"{"word": "apple", "word": "apple", "number": 1}"#, problem("inner.word", "occurs twice", None)),
        (
            r#"{"word": "apple", "number": "one"}"#,
            problem(
                "inner.number",
                "invalid type: string \"one\", expected a whole number from 0 to 255",
                None,
            ),
        ),
        (
            r#"{"word": "apple", "number": 256}"#,
            problem(
                "inner.number",
                "invalid value: integer `256`, expected a whole number from 0 to 255",
                None,
            ),
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(refused(given), expected, "{given}");
    }
    assert!(refused("{{").1.starts_with("the JSON cannot be read: "), "{:?}", refused("{{"));
}

#[test]
fn no_word_of_the_language_of_this_program_is_told() {
    for (message, expected) in [
        ("invalid type: string \"x\", expected usize", "a whole number that is not negative"),
        ("invalid value: integer `-1`, expected u32", "a whole number from 0 to 4294967295"),
        ("invalid type: floating point `1.5`, expected i64", "a whole number"),
        ("invalid type: boolean `true`, expected f64", "a number"),
        ("invalid type: string \"a, expected u8\", expected struct DeviceRequest", "an object"),
        ("invalid type: integer `1`, expected a string", "a string"),
        ("invalid type: boolean `true`, expected unit", "no value"),
    ] {
        let detail = of_text("field", message).detail.into_owned();
        let found = message.rsplit_once(", expected ").expect("what was expected").0;
        assert_eq!(detail, format!("{found}, expected {expected}"));
    }
}
