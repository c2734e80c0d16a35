//! Unmodified clients of gRPC judge our face: one that grpcio-tools makes from the description, and grpcurl, which knows
//! nothing but what reflection tells it.

use std::path::Path;
use std::process::Command;

use crate::faces::{Shop, clients, home, home_wanted_by, ran};

#[test]
fn a_client_made_from_the_description_uses_the_grpc_face() {
    let Some(home) = home("grpc", "requirements.txt") else { return };
    let shop = Shop::open();
    shop.ask(&mut made_client(&home, &shop, "unary_judge.py"));
}

#[test]
fn devices_are_imported_and_a_ledger_is_watched_as_streams() {
    let Some(home) = home("grpc", "requirements.txt") else { return };
    let shop = Shop::open();
    shop.ask(&mut made_client(&home, &shop, "stream_judge.py"));
}

#[test]
fn the_health_and_reflection_clients_of_grpcio_are_answered() {
    let Some(home) = home("grpc", "requirements.txt") else { return };
    let shop = Shop::open();
    shop.ask(&mut made_client(&home, &shop, "health_judge.py"));
}

#[test]
fn grpcurl_lists_describes_and_calls_without_a_file_of_ours() {
    let Some(home) = home_wanted_by(&["judges", "go"], "grpcurl", "go.mod") else { return };
    let shop = Shop::open();
    let address = shop.server.process.url().trim_start_matches("http://").to_owned();
    let asked = |data: &str, rest: &[&str]| {
        let mut command = Command::new(home.join("grpcurl"));
        let key = format!("authorization: Bearer {}", shop.key);
        command.args(["-plaintext", "-H", &key, "-d", data, &address]).args(rest);
        ran(&mut command)
    };
    let listed = asked("", &["list"]);
    assert!(listed.lines().any(|line| line == "stentor.v1.Messages"), "{listed}");
    let health = asked("", &["grpc.health.v1.Health/Check"]);
    assert!(health.contains("SERVING"), "{health}");
    let methods = asked("", &["list", "stentor.v1.Devices"]);
    assert!(methods.lines().any(|line| line == "stentor.v1.Devices.RegisterDevice"), "{methods}");
    let described = asked("", &["describe", "stentor.v1.Target"]);
    assert!(described.contains("oneof choice") && described.contains("bool everyone"), "{described}");
    let phone =
        r#"{"platform": "android", "provider": "null", "token": "token-of-a-phone", "topics": ["news"]}"#;
    let device = asked(phone, &["stentor.v1.Devices/RegisterDevice"]);
    assert!(device.contains("\"created\": true"), "{device}");
    let message = r#"{"target": {"topic": "news"}, "data": {"k": "v"}}"#;
    let sent = asked(message, &["stentor.v1.Messages/SendMessage"]);
    assert!(sent.contains("\"accepted\": {"), "{sent}");
}

/// Makes a client from the description that the program prints, and has it tell a story.
fn made_client(home: &Path, shop: &Shop, story: &str) -> Command {
    let (python, folder) = (home.join("bin/python"), shop.directory.path());
    let description = ran(Command::new(env!("CARGO_BIN_EXE_stentor")).args(["contract", "proto"]));
    std::fs::write(folder.join("stentor.proto"), description).unwrap();
    let mut tool = Command::new(&python);
    tool.current_dir(folder).args([
        "-m",
        "grpc_tools.protoc",
        "-I.",
        "--python_out=.",
        "--grpc_python_out=.",
    ]);
    ran(tool.arg("stentor.proto"));
    let mut client = Command::new(python);
    client.arg(clients("grpc").join(story));
    client
}
