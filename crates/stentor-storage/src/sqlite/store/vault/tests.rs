use super::*;
use crate::sqlite::file;
use crate::sqlite::migrations::{self, STORE};
use crate::sqlite::settings::SqliteSettings;

const SECRET: &str = "-----BEGIN PRIVATE KEY-----";

fn is_in(folder: &tempfile::TempDir, needle: &str) -> bool {
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    let mut files = files.map(|entry| std::fs::read(entry.expect("an entry").path()).expect("read"));
    files.any(|bytes| bytes.windows(needle.len()).any(|window| window == needle.as_bytes()))
}

/// Creates a file of a version without sealing, in which a credential was stored and removed.
fn earlier(folder: &tempfile::TempDir) -> Connection {
    let path = folder.path().join("stentor.db");
    file::ensure(&path).expect("made");
    let connection = file::open_writer(&path, &SqliteSettings::store()).expect("opened");
    let unsealed = STORE.iter().position(migrations::Migration::begins_to_seal).expect("a step that seals");
    migrations::run(&connection, &STORE[..unsealed]).expect("of that version");
    let sql = "INSERT INTO credentials (app, provider, secret, updated_at) VALUES (1, 1, ?1, 0)";
    run(&connection, sql, [SECRET.repeat(300)]).expect("put");
    run(&connection, "UPDATE sequences SET value = 9 WHERE name = 'id'", ()).expect("a server ran on it");
    run(&connection, "DELETE FROM credentials", ()).expect("removed");
    connection
}

#[test]
fn a_secret_that_was_removed_before_the_upgrade_is_wiped_from_free_space_and_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = earlier(&folder);
    assert!(is_in(&folder, SECRET), "a deleted row's bytes stay");
    migrations::run(&connection, STORE).expect("brought to the present");
    assert!(is_in(&folder, SECRET), "the new schema alone wipes nothing");
    let vault = Vault::new("5a".repeat(32).parse().ok());
    vault.adopt(&connection).expect("adopted");
    assert!(!is_in(&folder, SECRET));
    assert!(!exists(&connection, "SELECT 1 FROM scrubs WHERE due <> 0", ()).expect("asked"), "done once");
}

#[test]
fn a_scrub_that_a_reader_keeps_from_being_finished_is_due_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = earlier(&folder);
    migrations::run(&connection, STORE).expect("brought to the present");
    let path = folder.path().join("stentor.db");
    let settings = SqliteSettings { busy_timeout_ms: 0, ..SqliteSettings::store() };
    connection.busy_timeout(std::time::Duration::ZERO).expect("set");
    let reader = file::open_reader(&path, &settings).expect("opened");
    reader.execute_batch("BEGIN; SELECT * FROM sequences").expect("it reads");
    let vault = Vault::new("5a".repeat(32).parse().ok());
    vault.adopt(&connection).expect("the server starts in any case");
    assert!(exists(&connection, "SELECT 1 FROM scrubs WHERE due <> 0", ()).expect("asked"));
    drop(reader);
    vault.adopt(&connection).expect("adopted");
    assert!(!is_in(&folder, SECRET));
}
