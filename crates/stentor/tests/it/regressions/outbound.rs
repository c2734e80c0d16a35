//! R17: the addresses to which the server may connect, tested on a process with an environment and a command line.

use super::caller::{counts, shop, to_token, until};
use crate::messages::{emulator, set_credential};
use crate::process::{Process, run_json};
use crate::server::Server;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::net::TcpListener;
use tempfile::TempDir;

/// Returns the doctor's check of credentials.
fn credentials(found: &Value) -> &Value {
    let checks = found["checks"].as_array().unwrap();
    checks.iter().find(|check| check["what"] == "credentials").unwrap()
}

#[test]
fn r17_no_proxy_of_the_environment_is_used() {
    let directory = TempDir::new().unwrap();
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let names = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let mut environment = names.map(|name| (name, url.as_str())).to_vec();
    environment.extend([
        ("no_proxy", ""),
        ("NO_PROXY", ""),
        ("STENTOR__OUTBOUND__ALLOWED_NETWORKS", "loopback"),
    ]);
    let (server, emulator) =
        (Server::start_in(&environment, directory.path(), ""), emulator(directory.path()));
    server.ok(&["app", "create", "shop"]);
    set_credential(&server, &emulator, directory.path());
    server.ok(&["message", "send", "--token", "fcm-token:1", "--platform", "android", "--body", "hi"]);
    until("the message is accepted", || (counts(&emulator)["accepted"] == json!(1)).then_some(()));
    assert!(proxy.accept().is_err(), "the proxy was asked");
}

#[test]
fn r17_a_server_without_the_setting_refuses_this_machine_and_the_doctor_finds_what_was_stored() {
    let directory = TempDir::new().unwrap();
    let (mut server, emulator, caller) = shop(directory.path(), "");
    server.process.signal(Signal::TERM);
    assert!(server.process.wait().success());

    // Nothing is tried before there is a message to send, and then repeatedly.
    let settings = "[pipeline]\nready_max_credentials = 0\ncredential_probe_ms = 20\n";
    let server = Server::start_in(&[], directory.path(), settings);
    let (code, found) = server.run(&["doctor"]);
    let check = credentials(&found);
    assert_eq!((code, &check["health"]), (1, &json!("BROKEN")), "{found}");
    assert!(
        check["found"]
            .as_str()
            .unwrap()
            .contains("fcm parked (address_refused: endpoint: 127.0.0.1 is refused"),
        "{check}"
    );
    assert!(check["advice"].as_str().unwrap().contains("outbound.allowed_networks"), "{check}");
    let key = directory.path().join("service-account.json");
    let set = [
        "app",
        "credential",
        "set",
        "--provider",
        "fcm",
        "--endpoint",
        emulator.url(),
        key.to_str().unwrap(),
    ];
    let (code, report) = server.run(&set);
    assert_eq!((code, &report["code"]), (1, &json!("address_refused")), "{report}");
    caller.call(&server, Method::POST, "/v1/messages", Some(&to_token("fcm-token:1")));
    until("it is tried again", || (caller.metric(&server, "stentor_deliveries_total{") >= 5.0).then_some(()));
    let log = server.process.log();
    for line in ["lane parked", "no access token"] {
        assert_eq!(log.matches(line).count(), 1, "{line}: {log}");
    }
    drop(server);
    assert_eq!(counts(&emulator)["accepted"], json!(0));

    let server = Server::start(directory.path());
    until("the message is accepted", || (counts(&emulator)["accepted"] == json!(1)).then_some(()));
    assert_eq!(server.ok(&["doctor"])["ok"], json!(true));
}

#[test]
fn r17_a_network_is_allowed_on_the_command_line_and_a_wrong_one_is_refused() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap(), "--allow-network"];
    let (code, report) = run_json(&[&serve[..], &["locahost"]].concat());
    let error = report["error"].as_str().unwrap();
    assert!(code == 2 && error.contains("locahost") && error.contains("10.0.0.0/8"), "{report}");

    let log = directory.path().join("server.log");
    let process =
        Process::start(&[&serve[..], &["10.0.0.0/8", "--allow-network", "loopback"]].concat(), &log);
    let (server, emulator) = (Server::of(process, directory.path()), emulator(directory.path()));
    server.ok(&["app", "create", "shop"]);
    set_credential(&server, &emulator, directory.path());
    assert_eq!(server.ok(&["app", "credential", "list"])["credentials"][0]["state"], json!("ok"));
}
