//! Walls, dead files, text.

use super::{file, lines};
use crate::finding::TidyFinding;
use crate::tidy::walls::{Edge, banned, forbidden_edge};
use crate::tidy::{adapters, dead_files, promises, text};

fn edge(from: &str, to: &str, tests_only: bool) -> Option<TidyFinding> {
    let place = (format!("crates/{from}/Cargo.toml"), 12);
    forbidden_edge(&Edge { from: from.to_owned(), to: to.to_owned(), tests_only, place })
}

#[test]
fn the_allowed_edges_stand() {
    for (from, to) in [
        ("stentor-storage", "stentor-core"),
        ("stentor-providers", "stentor-http2"),
        ("stentor-emulators", "stentor-http2-codec"),
        ("stentor-server", "stentor-providers"),
        ("stentor", "stentor-server"),
        ("stentor-judges", "stentor-emulators"),
    ] {
        assert_eq!(edge(from, to, false), None, "{from} -> {to}");
    }
}

#[test]
fn a_forbidden_edge_is_named_with_its_line() {
    let finding = edge("stentor-emulators", "stentor-providers", false).unwrap();
    assert_eq!(finding.line, 12);
    assert!(finding.sentence.contains("stentor-emulators leans on stentor-providers"), "{finding}");
    assert!(edge("stentor-emulators", "stentor-http2", false).is_some());
    assert!(edge("stentor-core", "stentor-storage", false).is_some());
    assert!(edge("stentor-storage", "stentor-server", false).is_some());
    assert!(edge("xtask", "stentor-core", false).is_some());
}

#[test]
fn a_promise_names_a_test_that_exists() {
    let known = ["r1_nothing_is_lost", "the_sums_are_always_right"].map(str::to_owned).into();
    let rows: String = (1..=23).map(|number| format!("\n| R{number} | x | y |")).collect();
    let page = |held_by: &str| format!("| | invariant | {held_by} |{rows}");
    for well in ["server `r1_…`", "`the_sums_are_always_right`, `Ledger::is_balanced`, `core::limits`"] {
        assert_eq!(promises::findings(&page(well), &known), [], "{well}");
    }
    for wrong in ["`r2_…`", "`the_sums_are_never_wrong`"] {
        assert_eq!(lines(&promises::findings(&page(wrong), &known)), [1], "{wrong}");
    }
    let without = page("").replace("| R7 |", "| |");
    assert!(promises::findings(&without, &known)[0].sentence.contains("R7 has no row"));
}

#[test]
fn an_edge_for_tests_is_no_edge_for_the_product() {
    assert_eq!(edge("stentor-providers", "stentor-emulators", true), None);
    assert!(edge("stentor-providers", "stentor-emulators", false).is_some());
    assert!(
        edge("stentor-emulators", "stentor-core", true).is_some(),
        "emulators know nothing of us, even in tests"
    );
}

#[test]
fn a_library_stays_with_its_owner() {
    assert_eq!(edge("stentor-storage", "rusqlite", false), None);
    assert_eq!(edge("stentor", "rusqlite", true), None);
    assert!(edge("stentor", "rusqlite", false).is_some());
    assert!(edge("stentor-providers", "h2", false).is_some());
    assert!(edge("stentor-gateway", "jsonwebtoken", false).is_some());
    assert!(edge("stentor-emulators", "axum", true).is_some());
}

#[test]
fn core_uses_small_pure_libraries_only() {
    assert_eq!(edge("stentor-core", "serde", false), None);
    assert!(edge("stentor-core", "tokio", false).is_some());
    assert!(edge("stentor-core", "tokio", true).is_some());
}

#[test]
fn a_banned_library_in_the_build_is_found() {
    let sentences: Vec<String> = banned(|name| name == "ring").iter().map(ToString::to_string).collect();
    assert_eq!(sentences.len(), 1);
    assert!(sentences[0].contains("cargo tree -i ring"), "{sentences:?}");
    assert_eq!(banned(|_| false), Vec::new());
}

#[test]
fn a_file_that_no_mod_names_is_dead() {
    let root =
        file("crates/x/src/lib.rs", "mod a; mod inline { mod deep; } #[path = \"../odd/place.rs\"] mod odd;");
    let files = [
        root,
        file("crates/x/src/a.rs", "mod b;"),
        file("crates/x/src/a/b.rs", ""),
        file("crates/x/src/inline/deep.rs", ""),
        file("crates/x/odd/place.rs", ""),
        file("crates/x/src/forgotten.rs", "mod also;"),
        file("crates/x/src/forgotten/also.rs", ""),
    ];
    let findings = dead_files::unreachable(&["crates/x/src/lib.rs".to_owned()], &files);
    let dead: Vec<&str> = findings.iter().map(|finding| finding.file.as_str()).collect();
    assert_eq!(dead, ["crates/x/src/forgotten.rs", "crates/x/src/forgotten/also.rs"]);
}

#[test]
fn every_test_target_is_a_root_of_its_own() {
    let files = [file("crates/x/tests/it/main.rs", "mod story;"), file("crates/x/tests/it/story.rs", "")];
    let roots = ["crates/x/tests/it/main.rs".to_owned()];
    assert_eq!(dead_files::unreachable(&roots, &files), Vec::new());
}

#[test]
fn the_folder_of_the_checkout_is_named_nowhere() {
    let text = "see ./docs\nrun /home/me/stentor/target/x\nnot /home/me/stentor-two\n";
    assert_eq!(lines(&text::check_text("README.md", text, "/home/me/stentor", &[])), [2]);
    assert_eq!(text::check_text("README.md", text, "/home/you/stentor", &[]), Vec::new());
}

#[test]
fn a_checkout_at_a_short_path_finds_nothing_by_chance() {
    assert_eq!(text::check_text("README.md", "COPY . /src", "/src", &[]), Vec::new());
}

#[test]
fn a_forbidden_word_is_found() {
    assert_eq!(lines(&text::check_text("a.md", "one\ntwo words\n", "/a/b", &["two"])), [2]);
}

#[test]
fn the_registry_names_the_folders_of_the_adapters() {
    let registry = "macro_rules! kinds { ($($folder:ident: $kind:ident = $code:literal;)*) => {} }\n\
                    kinds! {\n    fcm: Fcm = 1, \"fcm\", \"A service.\";\n    web_push: WebPush = 5, \"web_push\", \"Another.\";\n}";
    let files = [
        file("crates/stentor-core/src/provider.rs", registry),
        file("crates/x/src/lib.rs", "a! { b: C = 1; }"),
    ];
    let folders = ["fcm", "web_push"].map(|folder| format!("crates/stentor-providers/src/{folder}/mod.rs"));
    assert_eq!(adapters::roots(&files), folders);
}
