//! Sizes, environment and time, leftovers.

use std::fmt::Write;

use super::{file, lines, sample};
use crate::rust_file::RustFile;
use crate::tidy::{environment, leftovers, log_text, outcomes, sizes};

fn function(name: &str, lines: usize) -> String {
    let mut text = format!("fn {name}() {{\n");
    for index in 0..lines {
        writeln!(text, "    // a comment costs nothing\n\n    let _ = {index};").unwrap();
    }
    text + "}\n"
}

#[test]
fn a_function_of_seventy_lines_passes_and_one_more_does_not() {
    assert_eq!(sizes::check_file(&sample(&function("short", 70))), Vec::new());
    let findings = sizes::check_file(&sample(&function("long", 71)));
    assert_eq!(lines(&findings), [1]);
    assert!(findings[0].sentence.contains("fn long has 71 lines of code"), "{}", findings[0]);
}

#[test]
fn a_long_function_with_a_reason_passes() {
    let reason = "#[expect(clippy::too_many_lines, reason = \"one table\")]\n";
    assert_eq!(sizes::check_file(&sample(&format!("{reason}{}", function("long", 90)))), Vec::new());
    let silent = "#[expect(clippy::too_many_lines)]\n";
    assert_eq!(sizes::check_file(&sample(&format!("{silent}{}", function("long", 90)))).len(), 1);
}

#[test]
fn methods_and_default_methods_are_functions_too() {
    let text = "trait T { fn no_body(&self); fn a(&self) { } }\nimpl S { fn b() { 1 } }\nfn c() {\n1\n}";
    let found = sizes::functions(&sample(text));
    let named: Vec<(&str, usize)> =
        found.iter().map(|found| (found.name.as_str(), found.code_lines)).collect();
    assert_eq!(named, [("a", 1), ("b", 1), ("c", 1)]);
}

#[test]
fn a_file_of_five_hundred_lines_passes_and_one_more_does_not() {
    assert_eq!(sizes::check_file(&sample(&"// line\n".repeat(500))), Vec::new());
    assert_eq!(lines(&sizes::check_file(&sample(&"// line\n".repeat(501)))), [501]);
}

fn judged(functions: &str) -> usize {
    let files = [sample(functions)];
    sizes::measure(&files).iter().map(|package| sizes::check_package(package).len()).sum()
}

#[test]
fn a_package_of_long_functions_is_found() {
    assert_eq!(judged(&function("f", 10).repeat(20)), 0);
    assert_eq!(judged(&function("f", 11).repeat(20)), 1, "the median");
    let mixed = function("f", 3).repeat(17) + &function("g", 36).repeat(3);
    assert_eq!(judged(&mixed), 1, "the 90th percentile");
    assert_eq!(judged(&function("f", 40).repeat(9)), 0, "nine functions are no statistics");
}

#[test]
fn tests_do_not_count_in_the_statistics() {
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function("f", 40).repeat(20));
    assert_eq!(judged(&(tests + &function("g", 5).repeat(20))), 0);
}

#[test]
fn reading_the_environment_is_found_even_inside_a_macro() {
    let text = "fn a() { let _ = std::env::var(\"A\"); }\nfn b() { println!(\"{:?}\", env::var_os(\"B\")); }";
    assert_eq!(lines(&environment::check(&sample(text))), [1, 2]);
}

#[test]
fn reading_the_wall_clock_is_found() {
    let text =
        "fn a() { SystemTime::now(); }\nfn b() { jiff::Timestamp::now(); }\nfn c() { Instant::now(); }";
    assert_eq!(lines(&environment::check(&sample(text))), [1, 2]);
}

#[test]
fn configuration_and_clock_may_read_their_own_thing_only() {
    let (env, time) = ("fn a() { std::env::var(\"A\"); }", "fn b() { SystemTime::now(); }");
    let count = |path: &str, text: &str| environment::check(&file(path, text)).len();
    assert_eq!(count("crates/stentor-server/src/config.rs", env), 0);
    assert_eq!(count("crates/stentor-server/src/config/layers.rs", env), 0);
    assert_eq!(count("crates/stentor-server/src/config.rs", time), 1);
    assert_eq!(count("crates/stentor-server/src/clock.rs", time), 0);
    assert_eq!(count("crates/stentor-server/src/clock.rs", env), 1);
    assert_eq!(count("crates/stentor/src/main.rs", env), 0);
    assert_eq!(count("crates/stentor-emulators/src/apns.rs", time), 0);
}

#[test]
fn tests_may_read_both() {
    let text = "#[cfg(test)]\nmod tests { fn a() { std::env::var(\"A\"); } }\n#[test]\nfn b() { SystemTime::now(); }";
    assert_eq!(environment::check(&sample(text)), Vec::new());
    let text = "fn a() { std::env::var(\"A\"); }";
    assert_eq!(environment::check(&file("crates/stentor-server/tests/it/main.rs", text)), Vec::new());
}

#[test]
fn unfinished_work_is_found() {
    let text =
        "fn a() { todo!() }\nfn b() { unimplemented!(\"later\") }\nfn c() { dbg!(1); }\nfn d() { vec![1]; }";
    assert_eq!(lines(&leftovers::check(&sample(text))), [1, 2, 3]);
    assert_eq!(leftovers::check(&sample("fn todo() {} fn a() { todo(); }")), Vec::new());
}

#[test]
fn an_ignored_test_is_found() {
    let text = "#[test]\n#[ignore]\nfn a() {}\n#[test]\n#[ignore = \"slow\"]\nfn b() {}\n\
                #[test]\n#[cfg_attr(target_os = \"linux\", ignore)]\nfn c() {}";
    assert_eq!(lines(&leftovers::check(&sample(text))), [2, 5, 8]);
    assert_eq!(leftovers::check(&sample("#[test]\nfn ignore() {}")), Vec::new());
}

#[test]
fn a_file_that_does_not_parse_is_a_finding() {
    let finding = RustFile::parse("x", "src/x.rs", "fn a() {\n  let = ;\n}").err().unwrap();
    assert_eq!((finding.file.as_str(), finding.line), ("src/x.rs", 2));
}

#[test]
fn only_settling_reads_an_outcome() {
    let text = "fn is_over(outcome: &Outcome) -> bool {\n    *outcome == Outcome::Accepted\n}";
    let found = |path| lines(&outcomes::check(&file(path, text)));
    assert_eq!(found("crates/stentor-server/src/pipeline/stats.rs"), [2]);
    assert!(found("crates/stentor-server/src/pipeline/settle/kind.rs").is_empty());
    assert!(found("crates/stentor-providers/src/replies.rs").is_empty());
}

#[test]
fn a_text_from_outside_is_logged_with_marks_and_a_message_is_constant() {
    let checked = |call: &str| log_text::check(&sample(&format!("fn f() {{ {call} }}")));
    for well in [
        r#"tracing::warn!(%error, app = %message.app, id = %self.key.0, "gone")"#,
        r#"tracing::info!(words, ?operation, reason = refusal.reason, left = count % 2, "a {{brace}}")"#,
        r#"tracing::info_span!("request", id = %origin.request_id, operation = named)"#,
        r#"println!("{operation}", %operation)"#,
    ] {
        assert_eq!(checked(well), [], "{well}");
    }
    for (wrong, name) in [
        (r#"tracing::info_span!("request", operation = %request.operation)"#, "operation"),
        (r#"tracing::debug!(%method, "asked")"#, "method"),
        (r#"tracing::warn!(%app, reason = %refusal.reason, "refused")"#, "reason"),
        (r#"tracing::warn!("{} failed", name)"#, "has values in it"),
        (r#"tracing::warn!(%error, "lane parked: {detail}")"#, "has values in it"),
    ] {
        let findings = checked(wrong);
        assert!(findings.len() == 1 && findings[0].sentence.contains(name), "{wrong}: {findings:?}");
    }
    let test = r#"#[test] fn a_test() { tracing::info!(%operation, "asked") }"#;
    assert_eq!(log_text::check(&sample(test)), []);
}
