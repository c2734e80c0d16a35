//! The command line itself: help, references, exit codes.

use crate::process::{run, run_json, stentor};
use crate::server::Server;
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
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
fn a_program_without_the_laboratory_beside_it_says_where_it_must_be_and_kills_all_the_same() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("stentor");
    std::fs::copy(stentor(&[]).get_program(), &program).unwrap();
    let alone = |words: &[&str]| {
        std::process::Command::new(&program).args(words).env("PATH", folder.path()).output().unwrap()
    };
    let refused = alone(&["lab", "list", "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    let sentence = object["error"].as_str().unwrap();
    assert_eq!(refused.status.code(), Some(6), "{object}");
    assert!(sentence.contains("stentor-lab") && sentence.contains("cargo build --release"), "{sentence}");
    for words in [["kill", "--help"].as_slice(), &["lab", "kill", "--help"]] {
        let help = alone(words);
        let text = String::from_utf8(help.stdout).unwrap();
        assert!(help.status.success() && text.contains("stentor kill --only disk-full"), "{words:?}: {text}");
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
fn the_contract_lists_each_operation_with_all_faces_and_what_each_face_lacks() {
    let (code, contract) = run_json(&["contract"]);
    assert_eq!((code, &contract["missing"]), (0, &json!([])));
    let operations = contract["operations"].as_array().unwrap();
    let names: Vec<_> = operations.iter().map(|one| one["operation"].as_str().unwrap()).collect();
    let wanted: Vec<_> = stentor_server::contract::table::OPERATIONS.iter().map(|facts| facts.name).collect();
    assert_eq!(names, wanted);
    assert!(names.contains(&"messages.send") && names.contains(&"services.publish"), "{names:?}");
    for one in operations {
        assert_eq!(one["faces"], json!(["rest", "xmlrpc", "socket", "soap", "grpc"]), "{one}");
    }
    let send = operations.iter().find(|one| one["operation"] == "messages.send").unwrap();
    assert_eq!(send["repeatable"], true);
    assert!(send["errors"].as_array().unwrap().contains(&json!("idempotency_key_reused")), "{send}");
    let watch = contract["streams"].as_array().unwrap();
    let watch = watch.iter().find(|one| one["faces"] == json!(["grpc"])).unwrap();
    assert!(watch["about"].as_str().is_some_and(|about| !about.is_empty()), "{watch}");
}

#[test]
fn the_default_configuration_passes_its_own_check() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("stentor.toml");
    std::fs::write(&path, run(&["config", "default"]).stdout).unwrap();
    let (code, report) = run_json(&["config", "check", path.to_str().unwrap()]);
    assert_eq!((code, &report["ok"]), (0, &json!(true)));
}

#[test]
fn an_unknown_setting_is_refused_with_a_suggestion() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("stentor.toml");
    std::fs::write(&path, "[api]\nlisten_on = \"127.0.0.1:1\"\n").unwrap();
    for command in [&["config", "check"][..], &["serve", "--config"][..]] {
        let (code, report) = run_json(&[command, &[path.to_str().unwrap()]].concat());
        let error = report["error"].as_str().unwrap();
        assert!(code == 2 && error.contains("listen_on") && error.contains("listen"), "{report}");
    }
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    let stranger = format!("sk_{}", "A".repeat(43));
    assert_eq!(server.run(&["device", "show", "dev_nobody"]).0, 5);
    let (code, report) = run_json(&["app", "list", "--server", server.process.url(), "--key", &stranger]);
    assert_eq!((code, &report["code"]), (4, &json!("unauthorized")));
    let (code, report) = run_json(&["app", "list", "--server", NOBODY, "--key", &stranger]);
    assert!(code == 3 && report["error"].as_str().unwrap().contains("stentor serve"), "{report}");
    assert_eq!(server.run(&["message", "send", "--body", "to nobody"]).0, 2);
}

#[test]
fn an_apps_own_key_says_which_of_several_apps_is_meant() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    let shop = server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "create", "another"]);
    let key = shop["key"]["secret"].as_str().unwrap();
    let ask =
        |command: &[&str]| run_json(&[command, &["--server", server.process.url(), "--key", key]].concat());
    let (code, report) = ask(&["app", "credential", "set", "--provider", "null"]);
    assert_eq!((code, &report["app"]), (0, &shop["id"]), "{report}");
    let (code, report) = ask(&["app", "credential", "list"]);
    assert_eq!((code, &report["credentials"][0]["provider"]), (0, &json!("null")), "{report}");
    let (code, report) = ask(&["app", "show"]);
    assert_eq!((code, &report["name"]), (0, &json!("shop")), "{report}");
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
    let (code, report) = server.run(&["device", "import", path.to_str().unwrap()]);
    // The object with the counts precedes the one with the advice.
    assert_eq!((code, &report["exit_code"]), (1, &json!(1)), "{report}");
    std::fs::write(&path, [good(1), good(2), good(3)].join("\n")).unwrap();
    let report = server.ok(&["device", "import", path.to_str().unwrap()]);
    assert_eq!((&report["lines"], &report["created"], &report["failed"]), (&json!(3), &json!(1), &json!(0)));
}

/// Commands that end by themselves and have no requirements.
const PRINTING: [&[&str]; 9] = [
    &["--help"],
    &["config", "default"],
    &["config", "explain"],
    &["completions", "bash"],
    &["openapi"],
    &["errors"],
    &["commands"],
    &["lab", "list"],
    &["app", "list", "--server", "http://127.0.0.1:1"],
];

#[test]
fn no_command_panics_where_nothing_can_be_printed() {
    for arguments in PRINTING {
        for full in [false, true] {
            let (mut reader, errors) = std::io::pipe().unwrap();
            let printed: Stdio = match full {
                true => File::options().write(true).open("/dev/full").unwrap().into(),
                // The reading end is closed at once.
                false => std::io::pipe().unwrap().1.into(),
            };
            let mut child = stentor(arguments).stdout(printed).stderr(errors).spawn().unwrap();
            let code = child.wait().unwrap().code();
            let mut said = String::new();
            reader.read_to_string(&mut said).unwrap();
            assert!(
                code.is_some_and(|code| code < 100) && !said.contains("panicked"),
                "{arguments:?}: {said}"
            );
            let closed = std::io::pipe().unwrap().1;
            let code = stentor(arguments).stdout(Stdio::null()).stderr(closed).status().unwrap().code();
            assert!(code.is_some_and(|code| code < 100), "{arguments:?}");
        }
    }
}

#[test]
fn no_command_writes_into_the_working_directory_unless_it_is_asked_to() {
    let directory = TempDir::new().unwrap();
    let in_it = |arguments: &[&str]| {
        let mut command = stentor(arguments);
        command.current_dir(directory.path()).env("HOME", directory.path());
        command
    };
    let working: [&[&str]; 4] = [
        &["demo", "--devices", "2"],
        &["lab", "kill", "--devices", "200", "--kills", "1", "--only", "kills"],
        &["lab", "bench", "accept", "--messages", "20", "--callers", "2", "--seconds", "0"],
        &["lab", "doctor"],
    ];
    for arguments in PRINTING.iter().chain(&working) {
        in_it(arguments).output().unwrap();
    }
    for service in ["fcm", "apns", "gcm", "hms", "ccs", "sink"] {
        let mut command = in_it(&["emulate", service, "--listen", "127.0.0.1:0", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with('{'), "{line}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn users_groups_and_topics_are_looked_after_by_commands() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    let register = ["device", "register", "--platform", "android", "--provider", "null", "--token", "t-1"];
    let device = server.ok(&[&register[..], &["--user", "u1", "--topic", "news"]].concat());
    let device = device["id"].as_str().unwrap().to_owned();
    server.ok(&["user", "create", "u2"]);
    assert_eq!(server.ok(&["user", "list"])["users"][1]["external_id"], "u2");
    assert_eq!(server.ok(&["user", "show", "u1"])["devices"], json!([device]));
    server.ok(&["group", "create", "team"]);
    let added = server.ok(&["group", "add", "team", "--user", "u1", "--user", "u2", "--device", &device]);
    assert_eq!(added["changed"], 3);
    let members = server.ok(&["group", "members", "team"]);
    assert_eq!((&members["users"], &members["devices"]), (&json!(["u1", "u2"]), &json!([device])));
    assert_eq!(server.ok(&["group", "list"])["groups"][0]["member_count"], 3);
    assert_eq!(server.ok(&["group", "remove", "team", "--user", "u2"])["changed"], 1);
    assert_eq!(server.run(&["group", "add", "team"]).0, 2);
    for delete in [["group", "delete", "team"], ["user", "delete", "u2"]] {
        server.ok(&delete);
        assert_eq!(server.run(&[delete[0], "show", delete[2]]).0, 5);
    }
    let data = directory.path().join("data");
    let list = ["topic", "list", "--server", server.process.url(), "--data-dir", data.to_str().unwrap()];
    let table = String::from_utf8(run(&list).stdout).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines, [["name", "device_count"], ["news", "1"]], "{table}");
}

#[test]
fn deliveries_of_a_message_and_campaigns_are_listed_with_what_people_look_for() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    server.ok(&["device", "register", "--platform", "android", "--provider", "null", "--token", "t-1"]);
    let sent = server.ok(&["message", "send", "--everyone", "--title", "Good news"]);
    server.ok(&["campaign", "progress", sent["campaign"].as_str().unwrap()]);
    let message = sent["id"].as_str().unwrap();
    let listed = server.ok(&["message", "deliveries", message, "--state", "accepted"]);
    assert_eq!(listed["deliveries"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(
        server.ok(&["message", "deliveries", message, "--state", "rejected"])["deliveries"],
        json!([])
    );
    assert_eq!(server.ok(&["device", "list", "--state", "retired"])["devices"], json!([]));
    let data = directory.path().join("data");
    let list = ["campaign", "list", "--server", server.process.url(), "--data-dir", data.to_str().unwrap()];
    let table = String::from_utf8(run(&list).stdout).unwrap();
    assert!(
        table.contains("everyone") && table.contains("Good news") && table.contains("finished"),
        "{table}"
    );
}

#[test]
fn a_setting_is_explained_by_its_name_and_by_that_of_its_section() {
    let explanation = String::from_utf8(run(&["config", "explain", "log.level"]).stdout).unwrap();
    for part in ["log.level = \"info\"", "per module", "default   \"info\"", "STENTOR__LOG__LEVEL"] {
        assert!(explanation.contains(part), "{part} is missing in {explanation}");
    }
    let (code, section) = run_json(&["config", "explain", "log"]);
    let names: Vec<_> = section["settings"].as_array().unwrap().iter().map(|one| &one["setting"]).collect();
    assert_eq!((code, names), (0, vec![&json!("log.format"), &json!("log.level")]));
    let (code, report) = run_json(&["config", "explain", "log.levle"]);
    assert!(code == 2 && report["error"].as_str().unwrap().contains("log.levle"), "{report}");
}

#[test]
fn a_server_whose_certificate_is_not_known_is_told_as_such_and_trusted_with_its_authority() {
    let directory = TempDir::new().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let settings = format!(
        "[api]\ntls_cert_file = {:?}\ntls_key_file = {:?}\n",
        certificate.to_str().unwrap(),
        key.to_str().unwrap()
    );
    let server = Server::start_with(directory.path(), &settings);
    let (_, port) = server.process.url().rsplit_once(':').unwrap();
    let (url, data) = (format!("https://localhost:{port}"), directory.path().join("data"));
    let list = ["app", "list", "--server", &url, "--data-dir", data.to_str().unwrap()];
    let (code, report) = run_json(&list);
    let error = report["error"].as_str().unwrap();
    assert!(code == 3 && error.contains("certificate of") && error.contains("--ca"), "{report}");
    assert!(!error.contains("stentor serve"), "the server is there: {report}");
    let (code, report) = run_json(&[&list[..], &["--ca", certificate.to_str().unwrap()]].concat());
    assert_eq!((code, &report["apps"]), (0, &json!([])), "{report}");
    // A credential has its own authority, which is not the server's.
    let trusted = [
        "--server",
        &url,
        "--data-dir",
        data.to_str().unwrap(),
        "--server-ca",
        certificate.to_str().unwrap(),
    ];
    let (code, made) = run_json(&[&["app", "create", "shop"][..], &trusted].concat());
    assert_eq!(code, 0, "{made}");
    let set = ["app", "credential", "set", "--provider", "null"];
    let (code, report) = run_json(&[&set[..], &trusted].concat());
    assert_eq!((code, &report["works"]), (0, &json!(true)), "{report}");
    let (code, report) = run_json(&[&list[..], &["--ca", key.to_str().unwrap()]].concat());
    assert!(code == 2 && report["error"].as_str().unwrap().contains("--ca"), "{report}");
}
