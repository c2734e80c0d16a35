//! Packaging files for operators: units of systemd, files for Docker Compose and a chart for Helm are valid.

use crate::device_clients::is_there;
use crate::faces::home_wanted_by;
use crate::nodes::client;
use crate::server::Server;
use serde_json::Value;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn packaging(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(folder)
}

/// Lists the files of a folder with an extension.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(packaging(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == end)).collect()
}

fn units() -> Vec<PathBuf> {
    files("systemd", "service")
}

/// Copies a unit with a program that exists on every machine, because a missing program would be reported first.
fn with_a_program_of_this_machine(unit: &Path, folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(unit).unwrap();
    let copy = folder.join(unit.file_name().unwrap());
    std::fs::write(&copy, text.replace("/usr/local/bin/stentor", "/bin/true")).unwrap();
    copy
}

#[test]
fn the_units_of_systemd_are_in_order() {
    let units = units();
    assert!(!units.is_empty());
    if !is_there("systemd-analyze") {
        return;
    }
    let folder = TempDir::new().unwrap();
    for unit in units {
        let copy = with_a_program_of_this_machine(&unit, folder.path());
        let found = Command::new("systemd-analyze").arg("verify").arg(&copy).output().unwrap();
        let text = String::from_utf8_lossy(&found.stderr).into_owned();
        // It also reads the units of this machine that ours is started after; only messages about ours count.
        let name = copy.file_name().unwrap().to_string_lossy().into_owned();
        let ours: Vec<&str> = text.lines().filter(|line| line.contains(&name)).collect();
        assert!(found.status.success() && ours.is_empty(), "{}: {text}", unit.display());
    }
}

/// Metrics that a server without TLS does not have.
const METRICS_OF_TLS: [&str; 2] =
    ["stentor_tls_certificate_left_seconds", "stentor_tls_certificates_refused_total"];

#[tokio::test]
async fn the_alerts_for_prometheus_are_about_metrics_that_a_server_prints() {
    let rules = std::fs::read_to_string(packaging("prometheus").join("stentor.rules.yml")).unwrap();
    let folder = TempDir::new().unwrap();
    let server = Server::start(folder.path());
    let printed = client(&server, &server.root_key()).text("/metrics").await.unwrap();
    let named = |line: &str| line.strip_prefix("# TYPE ")?.split(' ').next().map(str::to_owned);
    let printed: Vec<String> = printed.lines().filter_map(named).collect();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let expressions = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let words = expressions.flat_map(|expression| expression.split(|letter| !is_letter(letter)));
    let metrics: Vec<&str> = words.filter(|word| word.starts_with("stentor_")).collect();
    assert!(metrics.len() > 10, "{metrics:?}");
    for metric in metrics {
        let is_printed = printed.iter().any(|printed| printed == metric) || METRICS_OF_TLS.contains(&metric);
        assert!(is_printed, "{metric} is none of {printed:?}");
    }
    let count = |key: &str| rules.lines().filter(|line| line.trim().starts_with(key)).count();
    let alerts = count("- alert: Stentor");
    assert_eq!(
        [count("expr: "), count("labels: {severity: "), count("annotations: {summary: ")],
        [alerts; 3]
    );
}

#[tokio::test]
async fn the_linter_of_prometheus_finds_nothing_to_mend_in_the_metrics() {
    let Some(home) = home_wanted_by(&["judges", "go"], "promlint", "main.go") else { return };
    let folder = TempDir::new().unwrap();
    let server = Server::start(folder.path());
    // Creates requests of some operations.
    server.ok(&["app", "create", "shop"]);
    server.ok(&["topic", "list"]);
    let printed = client(&server, &server.root_key()).text("/metrics").await.unwrap();
    let path = folder.path().join("metrics");
    std::fs::write(&path, printed).unwrap();
    let judge = Command::new(home.join("judge")).stdin(std::fs::File::open(&path).unwrap()).output().unwrap();
    let text = String::from_utf8_lossy(&judge.stdout).into_owned() + &String::from_utf8_lossy(&judge.stderr);
    assert!(judge.status.success(), "{text}");
}

#[test]
fn the_loader_of_docker_compose_takes_each_shape() {
    let Some(home) = home_wanted_by(&["judges", "go"], "compose", "main.go") else { return };
    let shapes = files("compose", "yaml");
    assert!(shapes.len() >= 2);
    let printed = Command::new(home.join("judge")).args(&shapes).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let found: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), shapes.len(), "{printed}");
    let (nodes, alone): (Vec<&Value>, Vec<&Value>) =
        found.iter().partition(|shape| shape["file"].as_str().unwrap().ends_with("many-nodes.yaml"));
    for shape in &alone {
        assert_eq!(shape["error"], Value::Null, "{shape}");
        assert!(shape["services"]["stentor"]["mounts"][0] == "data", "keys and queue are kept: {shape}");
    }
    let with_postgres =
        alone.iter().find(|shape| shape["file"].as_str().unwrap().ends_with("with-postgres.yaml"));
    assert_eq!(with_postgres.unwrap()["services"]["stentor"]["needs"][0], "postgres");
    assert_eq!(nodes[0]["error"], Value::Null, "{}", nodes[0]);
    for server in ["api", "sender", "gateway"] {
        let server = &nodes[0]["services"][server];
        let needs: Vec<&str> = server["needs"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        assert!(needs.contains(&"postgres") && needs.contains(&"nats"), "{server}");
        assert_eq!(server["mounts"], serde_json::json!([]), "it keeps nothing of its own");
    }
}

/// Runs Helm on the chart; returns its success and its output.
fn helm(home: &Path, arguments: &[&str]) -> (bool, String) {
    let chart = packaging("helm/stentor");
    // Built from its module, Helm assumes Kubernetes 1.20, which the chart refuses.
    let kubernetes: &[&str] =
        if arguments.first() == Some(&"template") { &["--kube-version", "1.33.0"] } else { &[] };
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(home.join("helm"));
    command.args(arguments).args(kubernetes).arg(chart).env("HOME", folder.path());
    let done = command.output().unwrap();
    (done.status.success(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
}

#[test]
fn a_server_takes_the_secrets_that_the_script_makes() {
    if !is_there("openssl") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("make-secrets");
    std::fs::copy(packaging("compose/make-secrets"), &script).unwrap();
    let run = || assert!(Command::new(&script).output().unwrap().status.success());
    run();
    let secrets = folder.path().join("secrets");
    let made = std::fs::read_to_string(secrets.join("root.key")).unwrap();
    run();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&secrets), 0o700);
    for entry in std::fs::read_dir(&secrets).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600, "nobody else reads a secret");
    }
    let (env, owner) = (
        std::fs::read_to_string(folder.path().join(".env")).unwrap(),
        std::fs::metadata(secrets.join("root.key")).unwrap(),
    );
    assert_eq!(
        env,
        format!("STENTOR_UID={}\nSTENTOR_GID={}\n", owner.uid(), owner.gid()),
        "who may read them"
    );
    let server =
        Server::start_with(folder.path(), &format!("[secrets]\nshared_dir = \"{}\"\n", secrets.display()));
    assert_eq!(server.root_key(), made.trim(), "what is there stays");
    for name in ["key.pepper", "root.key", "seal.key", "service.key"] {
        let [given, taken] = [secrets.join(name), folder.path().join("data").join(name)]
            .map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(given.trim(), taken.trim(), "{name}");
    }
    assert_eq!(server.ok(&["app", "create", "shop"])["name"], "shop");
}

#[test]
fn the_chart_of_helm_is_in_order_and_renders_each_shape() {
    let Some(home) = home_wanted_by(&["helm"], "helm", "version") else { return };
    let shapes = files("helm/stentor/shapes", "yaml");
    assert!(shapes.len() >= 3);
    for shape in shapes {
        let values = shape.to_str().unwrap();
        let (is_fine, printed) = helm(&home, &["lint", "--strict", "--values", values]);
        assert!(is_fine, "{values}: {printed}");
        let (is_fine, rendered) = helm(&home, &["template", "push", "--values", values]);
        assert!(is_fine, "{values}: {rendered}");
        let has_nodes = values.ends_with("many-nodes.yaml");
        assert_eq!(rendered.contains("kind: StatefulSet"), !has_nodes, "{values}: {rendered}");
        assert_eq!(rendered.matches("kind: Deployment").count(), if has_nodes { 3 } else { 0 }, "{rendered}");
        let has_database = rendered.contains("STENTOR__STORE__URL_FILE");
        assert_eq!(has_database, !values.ends_with("one-binary.yaml"), "{values}: {rendered}");
        assert_eq!(rendered.contains("--role=scheduler,producer,consumer"), has_nodes, "{rendered}");
    }
    let refused = |values: &[&str], why: &str| {
        let values: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
        let (is_fine, printed) = helm(&home, &[&["template", "push"], &values[..]].concat());
        assert!(!is_fine && printed.contains(why), "{printed}");
    };
    refused(&["store.engine=postgres"], "store.urlSecret.name");
    refused(&["stor.engine=postgres"], "stor");
    let one = ["nodes.all.replicas=2", "nodes.all.roles={api,consumer}"];
    refused(&one, "store.engine must be postgres");
    let postgres = ["store.engine=postgres", "store.urlSecret.name=store"];
    refused(&[one, postgres].concat(), "queue.engine must be postgres or nats");
    refused(&[&one[..], &postgres, &["queue.engine=postgres"]].concat(), "sharedSecret");
    refused(&["nodes.all.replicas=2", "nodes.all.roles={sleeper}"], "roles");
}
