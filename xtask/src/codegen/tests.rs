use super::*;

#[test]
fn equal_texts_do_not_differ() {
    assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
}

#[test]
fn the_first_differing_line_is_named() {
    assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
    assert_eq!(first_difference("", "a\n"), Some(1));
    assert_eq!(first_difference("a\n", "a"), Some(2));
}

#[test]
fn a_missing_or_another_reference_is_named_with_its_line_and_what_brings_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = "docs/openapi.json";
    let text =
        |generated: &str| GeneratedText { path: path.into(), generated: generated.into(), what: "it".into() };
    let problem = "docs/openapi.json:1: is not it: run `cargo xtask codegen` and commit";
    assert_eq!(text("{}\n").problem(folder.path()).as_deref(), Some(problem));
    write(&folder.path().join(path), "{}\n").unwrap();
    assert_eq!(text("{}\n").problem(folder.path()), None);
    assert_eq!(text("{\"a\":1}\n").problem(folder.path()).as_deref(), Some(problem));
}

#[test]
fn json_without_indentation_is_the_same_json_line_by_line() {
    let pretty = "{\n  \"a\": [\n    \"  b\"\n  ]\n}\n";
    assert_eq!(without_indentation(pretty.to_owned()), "{\n\"a\": [\n\"  b\"\n]\n}\n");
}
