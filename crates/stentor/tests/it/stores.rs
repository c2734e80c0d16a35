//! A store that moves from its file into PostgreSQL and back, and the operators' commands on a database, as named by the documentation and
//! the program.

use crate::process::run_json;
use crate::server::Server;
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use stentor_stage::postgres::PrivatePostgres;
use tempfile::TempDir;

/// Starts a database; `None` if PostgreSQL is neither installed nor required.
fn database() -> Option<PrivatePostgres> {
    if Path::new("/usr/lib/postgresql").exists() {
        return Some(PrivatePostgres::start().unwrap());
    }
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|word| word == "postgres"), "PostgreSQL is not installed");
    let _ = writeln!(std::io::stderr(), "skipped: PostgreSQL is not installed");
    None
}

fn settings(database: &PrivatePostgres) -> String {
    format!("[store]\nengine = \"postgres\"\nurl = \"{}\"\n", database.url())
}

/// Runs a command with the configuration and the data of a directory.
fn of(directory: &Path, command: &[&str]) -> (i32, Value) {
    let [config, data] = ["stentor.toml", "data"].map(|name| directory.join(name).display().to_string());
    run_json(&[command, &["--config", &config, "--data-dir", &data]].concat())
}

/// Starts a server on its file that has an app, a device and a message, and ends it; returns the device's id.
fn filled(directory: &Path) -> String {
    let mut server = Server::start(directory);
    server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    let device = ["device", "register", "--platform", "android", "--token", "token-1", "--topic", "news"];
    let device = server.ok(&device)["id"].as_str().unwrap().to_owned();
    server.ok(&["message", "send", "--topic", "news", "--body", "kept"]);
    stop(&mut server);
    device
}

fn stop(server: &mut Server) {
    server.process.signal(Signal::TERM);
    assert!(server.process.wait().success(), "{}", server.process.log());
}

fn check<'a>(found: &'a Value, what: &str) -> &'a Value {
    found["checks"].as_array().unwrap().iter().find(|check| check["what"] == what).unwrap()
}

#[test]
fn a_server_moves_into_a_database_and_back_with_its_keys_and_devices() {
    let Some(database) = database() else { return };
    let directory = TempDir::new().unwrap();
    let device = filled(directory.path());
    let file = |name: &str| format!("sqlite:{}", directory.path().join(name).display());
    let (code, copied) = run_json(&["store", "copy", &file("data/stentor.db"), &database.url()]);
    assert_eq!((code, &copied["same"]), (0, &Value::from(true)), "{copied}");
    let mut server = Server::start_with(directory.path(), &settings(&database));
    assert_eq!(server.ok(&["device", "show", &device])["id"], Value::from(device.as_str()));
    assert_eq!(server.ok(&["app", "credential", "list"])["credentials"].as_array().unwrap().len(), 1);
    // A store in use cannot be copied.
    let (code, refused) = run_json(&["store", "copy", &database.url(), &file("back.db")]);
    assert!(
        code != 0 && refused["error"].as_str().unwrap().contains("servers use this database"),
        "{refused}"
    );
    stop(&mut server);
    let (code, back) = run_json(&["store", "copy", &database.url(), &file("back.db")]);
    assert_eq!(code, 0, "{back}");
    let rows = |copied: &Value, name: &str| {
        let tables = copied["tables"].as_array().unwrap();
        tables.iter().find(|table| table["table"] == name).unwrap()["rows"].clone()
    };
    assert_eq!([rows(&copied, "devices"), rows(&back, "devices")], [Value::from(1), Value::from(1)]);
    std::fs::rename(directory.path().join("back.db"), directory.path().join("data/stentor.db")).unwrap();
    let server = Server::start(directory.path());
    assert_eq!(server.ok(&["device", "show", &device])["id"], Value::from(device.as_str()));
}

#[test]
fn the_doctor_looks_at_a_database_and_the_schema_goes_a_step_back_and_forward() {
    let Some(database) = database() else { return };
    let directory = TempDir::new().unwrap();
    let mut server = Server::start_with(directory.path(), &settings(&database));
    let (_, found) = of(directory.path(), &["doctor"]);
    for what in [
        "database",
        "database link",
        "database distance",
        "database durability",
        "database connections",
        "database memory",
    ] {
        assert_eq!(check(&found, what)["health"], "ok", "{found}");
    }
    stop(&mut server);
    let migrate = |more: &[&str]| of(directory.path(), &[&["store", "migrate"], more].concat());
    let (code, back) = migrate(&["--back"]);
    assert_eq!(code, 0, "{back}");
    assert_eq!(back["from"].as_u64().unwrap(), back["to"].as_u64().unwrap() + 1);
    let (_, found) = of(directory.path(), &["doctor"]);
    assert_eq!(check(&found, "database")["health"], "warning", "{found}");
    let (code, forward) = migrate(&[]);
    assert_eq!((code, &forward["to"]), (0, &back["from"]), "{forward}");
    // Irreversible steps are refused, and nothing is changed.
    while migrate(&["--back"]).0 == 0 {}
    let (code, refused) = migrate(&["--back"]);
    assert!(code != 0 && refused["error"].as_str().unwrap().contains("cannot be undone"), "{refused}");
    Server::start_with(directory.path(), &settings(&database));
}

#[test]
fn what_the_backup_command_names_for_a_database_backs_it_up_and_restores_it() {
    let Some(database) = database() else { return };
    let directory = TempDir::new().unwrap();
    let mut server = Server::start_with(directory.path(), &settings(&database));
    server.ok(&["app", "create", "shop"]);
    let device =
        server.ok(&["device", "register", "--platform", "android", "--token", "token-1"])["id"].clone();
    let backup = directory.path().join("backup");
    let named = |command: &str| -> Vec<String> {
        let (code, refused) = of(directory.path(), &["store", command, backup.to_str().unwrap()]);
        assert_ne!(code, 0, "{refused}");
        let lines = refused["error"].as_str().unwrap().lines();
        lines.filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
    };
    let run = |lines: Vec<String>| {
        assert!(!lines.is_empty());
        for line in lines {
            let done = Command::new("sh").args(["-c", &line]).output().unwrap();
            assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        }
    };
    run(named("backup"));
    stop(&mut server);
    drop(database);
    let database = PrivatePostgres::start().unwrap();
    std::fs::write(directory.path().join("stentor.toml"), settings(&database)).unwrap();
    std::fs::remove_file(directory.path().join("data/key.pepper")).unwrap();
    run(named("restore"));
    let server = Server::start_with(directory.path(), &settings(&database));
    assert_eq!(server.ok(&["device", "show", device.as_str().unwrap()])["id"], device);
}
