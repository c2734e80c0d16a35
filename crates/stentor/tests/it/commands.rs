//! The command line itself: help, references, exit codes.

use crate::process::{run, run_json};
use crate::server::Server;
use serde_json::json;
use tempfile::TempDir;

const NOBODY: &str = "http://127.0.0.1:9";

#[test]
fn every_command_explains_itself() {
    let (_, list) = run_json(&["commands"]);
    let names: Vec<&str> =
        list["commands"].as_array().unwrap().iter().filter_map(|one| one["command"].as_str()).collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        let words: Vec<&str> = name.split(' ').skip(1).chain(["--help"]).collect();
        let help = run(&words);
        let text = String::from_utf8(help.stdout).unwrap();
        assert!(
            help.status.success() && text.contains("Usage:") && text.contains("Example"),
            "{name}: {text}"
        );
    }
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]);
        let text = String::from_utf8(script.stdout).unwrap();
        assert!(script.status.success() && text.contains("campaign"), "{shell}");
    }
}

#[test]
fn the_references_can_be_printed() {
    let openapi = run(&["openapi"]);
    let described: serde_json::Value = serde_json::from_slice(&openapi.stdout).unwrap();
    assert!(described["paths"]["/v1/messages"].is_object());
    let errors = String::from_utf8(run(&["errors", "--markdown"]).stdout).unwrap();
    assert!(errors.contains("idempotency_key_reused"), "{errors}");
    let commands = String::from_utf8(run(&["commands", "--markdown"]).stdout).unwrap();
    assert!(commands.contains("## stentor message send"), "{commands}");
}

#[test]
fn the_default_configuration_passes_its_own_check() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("stentor.toml");
    std::fs::write(&path, run(&["config", "default"]).stdout).unwrap();
    let (code, told) = run_json(&["config", "check", path.to_str().unwrap()]);
    assert_eq!((code, &told["ok"]), (0, &json!(true)));
}

#[test]
fn an_unknown_setting_is_refused_with_a_suggestion() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("stentor.toml");
    std::fs::write(&path, "[api]\nlisten_on = \"127.0.0.1:1\"\n").unwrap();
    for command in [&["config", "check"][..], &["serve", "--config"][..]] {
        let (code, told) = run_json(&[command, &[path.to_str().unwrap()]].concat());
        let error = told["error"].as_str().unwrap();
        assert!(code == 2 && error.contains("listen_on") && error.contains("listen"), "{told}");
    }
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    let stranger = format!("sk_{}", "A".repeat(43));
    assert_eq!(server.run(&["device", "show", "dev_nobody"]).0, 5);
    let (code, told) = run_json(&["app", "list", "--server", server.process.url(), "--key", &stranger]);
    assert_eq!((code, &told["code"]), (4, &json!("unauthorized")));
    let (code, told) = run_json(&["app", "list", "--server", NOBODY, "--key", &stranger]);
    assert!(code == 3 && told["error"].as_str().unwrap().contains("stentor serve"), "{told}");
    assert_eq!(server.run(&["message", "send", "--body", "to nobody"]).0, 2);
}

#[test]
fn an_import_counts_its_lines_and_says_which_are_bad() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    let path = directory.path().join("devices.ndjson");
    let good =
        |number: u32| json!({"platform": "android", "token": format!("token-{number:08}")}).to_string();
    std::fs::write(&path, [good(1), "{\"platform\":\"toaster\"}".to_owned(), good(2)].join("\n")).unwrap();
    let (code, told) = server.run(&["device", "import", path.to_str().unwrap()]);
    // The object with the counts stands before the one that says what to do.
    assert_eq!((code, &told["exit_code"]), (1, &json!(1)), "{told}");
    std::fs::write(&path, [good(1), good(2), good(3)].join("\n")).unwrap();
    let told = server.ok(&["device", "import", path.to_str().unwrap()]);
    assert_eq!((&told["lines"], &told["created"], &told["failed"]), (&json!(3), &json!(1), &json!(0)));
}
