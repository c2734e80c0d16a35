use super::*;

fn failure(name: &str, lines: impl IntoIterator<Item = String>) -> StepFailure {
    StepFailure { name: name.to_owned(), lines: lines.into_iter().collect() }
}

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|line| format!("line {line}"))
}

#[test]
fn a_short_output_is_repeated_whole_and_without_blank_lines() {
    let text = text(&[failure("-p a --lib: one", ["a".into(), " ".into(), "b".into()])]);
    assert_eq!(text, "== failures ==\n-- -p a --lib: one\n   a\n   b");
}

#[test]
fn of_a_long_output_the_last_lines_are_repeated() {
    let text = text(&[failure("one", numbered(100))]);
    assert!(text.contains("\n   (42 lines before)\n   line 42\n"), "{text}");
    assert!(text.ends_with("\n   line 99"), "{text}");
}

#[test]
fn a_panics_message_is_repeated_however_much_comes_after_it() {
    let panic = "thread 'one' panicked at src/lib.rs:1:1:".to_owned();
    let text = text(&[failure("one", numbered(5).chain([panic]).chain(numbered(90)))]);
    assert!(text.contains("\n   (5 lines before)\n   thread 'one' panicked at"), "{text}");
    assert!(text.ends_with("\n   (33 lines after)"), "{text}");
}

#[test]
fn the_last_two_hundred_lines_of_a_log_hold_every_failure() {
    for count in [1, 2, 5, 20, 41, 1_000] {
        let failures: Vec<_> = (0..count).map(|at| failure(&format!("test {at}"), numbered(500))).collect();
        let text = text(&failures);
        assert!(text.lines().count() <= 190, "{count}: {}", text.lines().count());
        assert!(text.contains("-- test 0\n"));
        assert_eq!(text.contains("-- and "), count > 40);
    }
}
