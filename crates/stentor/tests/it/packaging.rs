//! What the repository has for those who install the server: units of systemd, files for Docker Compose and a chart for Helm are in order.

use crate::faces::home_wanted_by;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn packaging(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(folder)
}

/// Lists the files of a folder with an ending.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(packaging(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == end)).collect()
}

fn units() -> Vec<PathBuf> {
    files("systemd", "service")
}

/// Writes a unit with a program that every machine has: a missing one is what is found wrong first.
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
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("skipped: there is no systemd-analyze");
        return;
    }
    let folder = TempDir::new().unwrap();
    for unit in units {
        let copy = with_a_program_of_this_machine(&unit, folder.path());
        let found = Command::new("systemd-analyze").arg("verify").arg(&copy).output().unwrap();
        let told = String::from_utf8_lossy(&found.stderr).into_owned();
        // It also reads the units of this machine that ours is started after; only ours is judged.
        let name = copy.file_name().unwrap().to_string_lossy().into_owned();
        let ours: Vec<&str> = told.lines().filter(|line| line.contains(&name)).collect();
        assert!(found.status.success() && ours.is_empty(), "{}: {told}", unit.display());
    }
}

#[test]
fn the_loader_of_docker_compose_takes_each_shape() {
    let Some(home) = home_wanted_by(&["judges", "go"], "compose", "main.go") else { return };
    let shapes = files("compose", "yaml");
    assert!(shapes.len() >= 2);
    let told = Command::new(home.join("judge")).args(&shapes).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let found: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), shapes.len(), "{told}");
    for shape in &found {
        assert_eq!(shape["error"], Value::Null, "{shape}");
        assert!(shape["services"]["stentor"]["mounts"][0] == "data", "keys and queue are kept: {shape}");
    }
    let with_postgres =
        found.iter().find(|shape| shape["file"].as_str().unwrap().ends_with("with-postgres.yaml"));
    assert_eq!(with_postgres.unwrap()["services"]["stentor"]["needs"][0], "postgres");
}

/// Runs Helm on the chart; returns whether it is content, and what it says.
fn helm(home: &Path, arguments: &[&str]) -> (bool, String) {
    let chart = packaging("helm/stentor");
    // Built from its module, Helm takes itself for one of Kubernetes 1.20, which the chart refuses.
    let kubernetes: &[&str] =
        if arguments.first() == Some(&"template") { &["--kube-version", "1.33.0"] } else { &[] };
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(home.join("helm"));
    command.args(arguments).args(kubernetes).arg(chart).env("HOME", folder.path());
    let done = command.output().unwrap();
    (done.status.success(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
}

#[test]
fn the_chart_of_helm_is_in_order_and_renders_each_shape() {
    let Some(home) = home_wanted_by(&["helm"], "helm", "version") else { return };
    let shapes = files("helm/stentor/shapes", "yaml");
    assert!(shapes.len() >= 2);
    for shape in shapes {
        let values = shape.to_str().unwrap();
        let (is_fine, told) = helm(&home, &["lint", "--strict", "--values", values]);
        assert!(is_fine, "{values}: {told}");
        let (is_fine, rendered) = helm(&home, &["template", "push", "--values", values]);
        assert!(is_fine && rendered.contains("kind: StatefulSet"), "{values}: {rendered}");
        let has_database = rendered.contains("STENTOR__STORE__URL_FILE");
        assert_eq!(has_database, values.ends_with("with-postgres.yaml"), "{values}: {rendered}");
    }
    let (is_fine, told) = helm(&home, &["template", "push", "--set", "store.engine=postgres"]);
    assert!(!is_fine && told.contains("store.urlSecret.name"), "{told}");
    let (is_fine, told) = helm(&home, &["template", "push", "--set", "stor.engine=postgres"]);
    assert!(!is_fine && told.contains("stor"), "{told}");
}
