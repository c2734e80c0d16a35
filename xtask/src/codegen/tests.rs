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
fn a_missing_reference_is_not_current() {
    let folder = tempfile::tempdir().unwrap();
    let reference = &REFERENCES[0];
    let path = folder.path().join("docs/openapi.json");
    assert!(!is_current(&path, reference, "{}\n"));
    write(&path, "{}\n").unwrap();
    assert!(is_current(&path, reference, "{}\n"));
    assert!(!is_current(&path, reference, "{\"a\":1}\n"));
}
