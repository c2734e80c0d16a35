//! Files of the data directory: accessible to the owner only, with sealed secrets.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::json;
use stentor_node::{Sealing, rotate};
use stentor_server::app::AppError;
use stentor_server::config::Engine;
use tokio::sync::mpsc;

use crate::harness::{Reading, Server, Tenant, config, durable_server};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

/// Lists every file of a directory with its mode.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), mode(&entry.path()))).collect()
}

fn wider(folder: &Path) -> Vec<(String, u32)> {
    modes(folder).into_iter().filter(|(_, mode)| *mode != 0o600).collect()
}

/// Runs a server in a directory that does not exist yet.
async fn worked(data: PathBuf) {
    let app = stentor_node::build(config(&data, Engine::Sqlite)).await.expect("the server starts");
    assert_eq!((mode(&data), wider(&data)), (0o700, Vec::new()), "while it runs");
    let names: Vec<_> = modes(&data).into_iter().map(|(name, _)| name).collect();
    for name in [
        "stentor.db",
        "stentor.db-wal",
        "stentor.db-shm",
        "quotas",
        "stentor.lock",
        "root.key",
        "listen.addr",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} is not among {names:?}");
    }
    let (_reload, reloads) = mpsc::channel(1);
    app.run(async {}, reloads).await.expect("it runs");
}

#[tokio::test]
async fn a_server_keeps_its_directory_and_every_file_for_its_owner_alone() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    worked(data.clone()).await;
    assert_eq!((mode(&data), wider(&data)), (0o700, Vec::new()), "after it ended");
}

#[tokio::test]
async fn what_an_earlier_version_left_open_to_others_is_narrowed_at_start() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    worked(data.clone()).await;
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).expect("widened");
    for (name, _) in modes(&data) {
        std::fs::set_permissions(data.join(name), PermissionsExt::from_mode(0o644)).expect("widened");
    }
    worked(data.clone()).await;
}

/// Puts an APNs credential and returns the secret line of its key.
async fn put_apns(server: &Server, tenant: &Tenant) -> String {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
    let body =
        json!({"key_p8": key, "key_id": "KEYID12345", "team_id": "TEAMID1234", "bundle_id": "org.example"});
    let path = format!("/v1/apps/{}/credentials/apns", tenant.id);
    let put = server.send(tenant, Method::PUT, &path).json(&body).read().await;
    assert_eq!(put.status, 204, "{put:?}");
    key.lines().nth(1).expect("a line").to_owned()
}

async fn summary(server: &Server, tenant: &Tenant) -> String {
    let listed = server.get(tenant, &format!("/v1/apps/{}/credentials", tenant.id)).await;
    listed["credentials"][0]["summary"]["key_id"].as_str().expect("it opens").to_owned()
}

/// Lists the files that hold the text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let files = modes(folder).into_iter().map(|(name, _)| name);
    let holds = |name: &String| {
        let bytes = std::fs::read(folder.join(name)).expect("read");
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    files.filter(holds).collect()
}

async fn refused(folder: &Path) -> String {
    match stentor_node::build(config(folder, Engine::Sqlite)).await {
        Err(AppError::Sealing(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it starts"),
    }
}

#[tokio::test]
async fn a_credential_is_in_no_file_and_opens_after_a_restart() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    let line = put_apns(&server, &tenant).await;
    assert_eq!(holding(server.folder.path(), &line), Vec::<String>::new(), "while it runs");
    let folder = server.stop().await;
    assert_eq!(holding(folder.path(), &line), Vec::<String>::new(), "after it ended");
    let server = durable_server(folder).await;
    assert_eq!(summary(&server, &tenant).await, "KEYID12345");
}

#[tokio::test]
async fn a_missing_or_wrong_key_keeps_the_server_from_starting_and_nothing_is_touched() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    put_apns(&server, &tenant).await;
    let folder = server.stop().await;
    let path = folder.path().join("seal.key");
    let key = std::fs::read_to_string(&path).expect("a key");
    let id = Sealing::look(&config(folder.path(), Engine::Sqlite)).expect("looked at").keys[0].to_string();
    let database = std::fs::read(folder.path().join("stentor.db")).expect("read");
    std::fs::remove_file(&path).expect("removed");
    let why = refused(folder.path()).await;
    assert!(why.contains(&id) && why.contains("seal.key") && why.contains("put again"), "{why}");
    assert!(!path.exists(), "no other key is made");
    std::fs::write(&path, "0f".repeat(32)).expect("written");
    let why = refused(folder.path()).await;
    assert!(why.contains(&id) && why.contains("has "), "{why}");
    std::fs::write(&path, "not a key").expect("written");
    let why = refused(folder.path()).await;
    assert!(why.contains("64 hex digits") && !why.contains("not a key\""), "{why}");
    assert!(
        database == std::fs::read(folder.path().join("stentor.db")).expect("read"),
        "nothing was written"
    );
    std::fs::write(&path, key).expect("written");
    let server = durable_server(folder).await;
    assert_eq!(summary(&server, &tenant).await, "KEYID12345");
}

#[tokio::test]
async fn a_rotation_seals_everything_anew_and_the_former_key_opens_nothing() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    put_apns(&server, &tenant).await;
    let running = rotate(&config(server.folder.path(), Engine::Sqlite));
    assert!(matches!(running, Err(AppError::InUse(_))), "not under a running server");
    let folder = server.stop().await;
    let (path, settings) = (folder.path().join("seal.key"), config(folder.path(), Engine::Sqlite));
    let former = std::fs::read_to_string(&path).expect("a key");
    let done = rotate(&settings).expect("rotated");
    assert_eq!((done.credentials, done.unreadable), (1, 0));
    assert_ne!(done.from, done.to);
    assert_eq!(std::fs::read_to_string(&path).expect("a key").lines().count(), 1, "the former key is gone");
    assert_eq!(holding(folder.path(), &done.from.to_string()), Vec::<String>::new(), "so is what it sealed");
    assert_eq!(mode(&path), 0o600);
    let present = std::fs::read_to_string(&path).expect("a key");
    std::fs::write(&path, former).expect("written");
    assert!(refused(folder.path()).await.contains(&done.to.to_string()));
    std::fs::write(&path, present).expect("written");
    let server = durable_server(folder).await;
    assert_eq!(summary(&server, &tenant).await, "KEYID12345");
}

#[tokio::test]
async fn a_key_from_the_configuration_takes_over_with_the_former_one_behind_it() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    put_apns(&server, &tenant).await;
    let folder = server.stop().await;
    let former = std::fs::read_to_string(folder.path().join("seal.key")).expect("a key");
    let mut settings = config(folder.path(), Engine::Sqlite);
    settings.secrets.key = format!("{} {former}", "5a".repeat(32)).into();
    drop(stentor_node::build(settings.clone()).await.expect("both are known"));
    settings.secrets.key = "5a".repeat(32).into();
    assert_eq!(Sealing::look(&settings).expect("looked at").problem(), None);
    assert!(refused(folder.path()).await.contains("the key"), "the file has the former one alone");
}
