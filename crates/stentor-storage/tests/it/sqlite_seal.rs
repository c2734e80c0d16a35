//! Credentials at rest: the file contains nothing of them, whichever version wrote it before, and only their key opens them.

use std::path::PathBuf;

use rusqlite::Connection;
use stentor_core::app::Credential;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::{AppStore, StoreError, UpstreamStore};
use stentor_core::upstream::UpstreamWebhook;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{app, at};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore, sealed_under};
use tempfile::TempDir;

/// The text that must never lie on a disk.
const SECRET: &str = "-----BEGIN PRIVATE KEY-----MIGHAgEAMBMGByqGSM49-";

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("stentor.db")
    }

    /// Opens the store as versions did that sealed nothing.
    fn clear(&self) -> SqliteStore {
        SqliteStore::open(self.path(), SqliteSettings::store()).expect("opened")
    }

    fn sealed(&self, keys: &str) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_sealed(self.path(), SqliteSettings::store(), keys.parse().expect("keys"))
    }

    /// Changes the closed store's file behind its back.
    fn meddle(&self, sql: &str) {
        Connection::open(self.path()).expect("opened").execute_batch(sql).expect("changed");
    }

    /// Returns true if any file holds the bytes.
    fn holds(&self, needle: &str) -> bool {
        let files = std::fs::read_dir(self.0.path()).expect("a folder");
        let mut files = files.map(|entry| std::fs::read(entry.expect("an entry").path()).expect("read"));
        files.any(|bytes| bytes.windows(needle.len()).any(|window| window == needle.as_bytes()))
    }

    /// Lists the keys that rows need, with their counts.
    fn wanted(&self) -> Vec<(String, u64)> {
        let wanted = sealed_under(self.path()).expect("read");
        wanted.into_iter().map(|(id, count)| (id.to_string(), count)).collect()
    }
}

fn key(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

fn id(key: &str) -> String {
    key.parse::<stentor_storage::seal::SealKeys>().expect("keys").present().to_string()
}

fn secret(app: AppId, provider: ProviderKind) -> String {
    format!(r#"{{"key_p8":"{}{app}{provider}"}}"#, SECRET.repeat(60))
}

fn credential(number: u64, provider: ProviderKind) -> Credential {
    let app = AppId::from_raw(number);
    Credential { app, provider, secret: secret(app, provider), updated_at: at(0) }
}

/// Stores apps and two credentials of each; some are stored twice, and one is removed.
async fn fill(store: &SqliteStore, apps: u64) {
    for number in 1..=apps {
        store.create_app(&app(number)).await.expect("kept");
        for provider in [ProviderKind::Fcm, ProviderKind::Apns, ProviderKind::Fcm] {
            store.put_credential(&credential(number, provider)).await.expect("kept");
        }
    }
    store.delete_credential(AppId::from_raw(apps), ProviderKind::Apns).await.expect("removed");
}

async fn assert_whole(store: &SqliteStore, apps: u64) {
    let listed = store.credentials().await.expect("listed");
    assert_eq!(listed.len() as u64, 2 * apps - 1);
    assert!(listed.iter().all(|one| one.secret == secret(one.app, one.provider)), "each opens as it was put");
    let one = store.credential(AppId::from_raw(1), ProviderKind::Apns).await.expect("found");
    assert_eq!(one.secret, secret(one.app, one.provider));
}

#[tokio::test]
async fn a_credential_lies_sealed_in_file_and_log_and_is_given_as_it_was_put() {
    let folder = Folder::new();
    let store = folder.sealed(&key(1)).expect("opened");
    fill(&store, 3).await;
    assert_whole(&store, 3).await;
    assert!(!folder.holds(&SECRET[..20]), "neither the database nor its log");
    drop(store);
    assert_eq!(folder.wanted(), [(id(&key(1)), 5)]);
    assert_whole(&folder.sealed(&key(1)).expect("opened again"), 3).await;
}

#[tokio::test]
async fn what_earlier_versions_kept_in_clear_is_sealed_at_start_and_nothing_of_it_is_left() {
    let folder = Folder::new();
    let store = folder.clear();
    fill(&store, 300).await;
    drop(store);
    assert!(folder.holds(SECRET));
    let store = folder.sealed(&key(1)).expect("opened");
    assert!(!folder.holds(&SECRET[..20]), "neither rows, nor free space, nor the log, while it runs");
    assert_whole(&store, 300).await;
    drop(store);
    assert!(!folder.holds(&SECRET[..20]));
    assert_eq!(folder.wanted(), [(id(&key(1)), 599)]);
}

#[tokio::test]
async fn a_new_key_takes_over_every_row_while_the_former_opens() {
    let folder = Folder::new();
    let store = folder.sealed(&key(1)).expect("opened");
    fill(&store, 300).await;
    drop(store);
    let rotated = format!("{} {}", key(2), key(1));
    assert_whole(&folder.sealed(&rotated).expect("both are known"), 300).await;
    assert_eq!(folder.wanted(), [(id(&key(2)), 599)]);
    assert_whole(&folder.sealed(&key(2)).expect("the former is needed no more"), 300).await;
}

#[tokio::test]
async fn a_webhook_lies_sealed_with_its_address_and_moves_to_a_new_key() {
    let folder = Folder::new();
    let webhook = UpstreamWebhook {
        app: AppId::from_raw(1),
        url: "https://app.example/hook?token=in-the-address".to_owned(),
        secret: "whsec_c2VjcmV0LW9mLXRoZS13ZWJob29r".to_owned(),
        updated_at: at(0),
        former: None,
    };
    let store = folder.clear();
    store.create_app(&app(1)).await.expect("kept");
    store.put_webhook(&webhook).await.expect("kept");
    drop(store);
    assert!(folder.holds("in-the-address") && folder.holds(&webhook.secret));
    drop(folder.sealed(&key(1)).expect("opened"));
    let store = folder.sealed(&format!("{} {}", key(2), key(1))).expect("both are known");
    assert!(!folder.holds("in-the-address") && !folder.holds(&webhook.secret));
    assert_eq!(store.upstream_webhook(webhook.app).await, Ok(webhook.clone()));
    drop(store);
    assert_eq!(folder.wanted(), [(id(&key(2)), 1)]);
    let store = folder.sealed(&key(2)).expect("the former is needed no more");
    assert_eq!(store.upstream_webhooks().await, Ok(vec![webhook.clone()]));
    drop(store);
    folder.meddle("INSERT INTO upstream_webhooks SELECT 2, secret, updated_at FROM upstream_webhooks");
    let store = folder.sealed(&key(2)).expect("opened");
    assert!(matches!(store.upstream_webhook(AppId::from_raw(2)).await, Err(StoreError::Damaged(_))));
    assert_eq!(
        store.upstream_webhooks().await,
        Ok(vec![webhook]),
        "one that cannot be opened holds nothing up"
    );
}

#[tokio::test]
async fn a_rotation_that_was_cut_off_leaves_every_row_readable_and_goes_on() {
    let folder = Folder::new();
    let store = folder.sealed(&key(1)).expect("opened");
    fill(&store, 4).await;
    drop(store);
    drop(folder.sealed(&format!("{} {}", key(2), key(1))).expect("opened"));
    let before = Connection::open(folder.path()).expect("opened");
    let half: Vec<(i64, String)> = before
        .prepare("SELECT app, secret FROM credentials WHERE app < 3 AND provider = 1")
        .and_then(|mut rows| rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .expect("read");
    drop(before);
    let back = format!("{} {}", key(1), key(2));
    drop(folder.sealed(&back).expect("opened"));
    for (app, record) in half {
        folder.meddle(&format!(
            "UPDATE credentials SET secret = '{record}' WHERE app = {app} AND provider = 1"
        ));
    }
    let wanted = folder.wanted();
    assert_eq!(wanted.len(), 2, "as a kill in the middle leaves it: {wanted:?}");
    assert_whole(&folder.sealed(&back).expect("both are known"), 4).await;
    assert_eq!(folder.wanted(), [(id(&key(1)), 7)]);
}

#[tokio::test]
async fn a_wrong_key_or_none_is_refused_and_nothing_is_touched() {
    let folder = Folder::new();
    let store = folder.sealed(&key(1)).expect("opened");
    fill(&store, 2).await;
    drop(store);
    let before = std::fs::read(folder.path()).expect("read");
    let wrong = folder.sealed(&key(2)).expect_err("another key");
    let none = SqliteStore::open(folder.path(), SqliteSettings::store()).expect_err("no key");
    for refused in [wrong, none] {
        assert!(matches!(&refused, StoreError::Conflict(why) if why.contains(&id(&key(1)))), "{refused}");
    }
    assert!(before == std::fs::read(folder.path()).expect("read"), "the file is as it was");
    assert_whole(&folder.sealed(&key(1)).expect("the right key"), 2).await;
}

#[tokio::test]
async fn a_torn_row_and_a_row_in_anothers_place_hold_nothing_else_up() {
    let folder = Folder::new();
    let store = folder.sealed(&key(1)).expect("opened");
    fill(&store, 4).await;
    drop(store);
    folder.meddle(
        "UPDATE credentials SET secret = substr(secret, 1, 30) || '!' || substr(secret, 32) WHERE app = 1 AND provider = 1;
        UPDATE credentials SET secret = (SELECT secret FROM credentials WHERE app = 3 AND provider = 1)
            WHERE app = 2 AND provider = 1;
        UPDATE credentials SET secret = '{\"key_p8\":\"forged\"}' WHERE app = 3 AND provider = 2",
    );
    let store = folder.sealed(&key(1)).expect("it starts");
    let (torn, swapped) = (AppId::from_raw(1), AppId::from_raw(2));
    for app in [torn, swapped] {
        let refused = store.credential(app, ProviderKind::Fcm).await;
        assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
    }
    assert_eq!(store.credentials().await.expect("listed").len(), 5);
    store.put_credential(&credential(1, ProviderKind::Fcm)).await.expect("put again");
    assert!(store.credential(torn, ProviderKind::Fcm).await.is_ok());
}
