//! TLS to PostgreSQL, against a real server: required, verified and used as the address says.

use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use stentor_core::ports::store::StoreError;
use stentor_storage::postgres::{PostgresAddress, PostgresSettings, PostgresStore};

use crate::postgres_server::{TestDatabase, server};

/// The longest time for the server to reload its settings.
const RELOAD: Duration = Duration::from_secs(30);

/// An authority of the test's own.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// Opens a store on a thread on which the driver may block; returns the number of its encrypted connections.
fn open(database: &TestDatabase, host: &str, query: &str) -> Result<i64, StoreError> {
    let address: PostgresAddress = database.url_of(host, query).parse()?;
    std::thread::scope(|scope| {
        let work = || {
            let store = PostgresStore::open(&address, &PostgresSettings::default())?;
            let encrypted = database.count_encrypted();
            drop(store);
            Ok(encrypted)
        };
        scope.spawn(work).join().expect("no panic")
    })
}

#[test]
fn tls_is_required_verified_and_used_as_the_address_says() {
    let Some(server) = server() else { return };
    let database = server.database();
    assert!(open(&database, "localhost", "sslmode=require").is_err(), "it does not speak TLS yet");
    assert_eq!(open(&database, "localhost", "sslmode=prefer"), Ok(0));

    let (ours, others) = (authority(), authority());
    let key = KeyPair::generate().expect("a key");
    let names = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = names.signed_by(&key, &ours).expect("signed");
    server.speak_tls(&certificate.pem(), &key.serialize_pem());
    let begun = Instant::now();
    while open(&database, "localhost", "sslmode=require").is_err() {
        assert!(begun.elapsed() < RELOAD, "it does not speak TLS");
    }

    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, pem: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).expect("written");
        format!("sslmode=verify-full&sslrootcert={}", path.display())
    };
    let (trusted, foreign) = (file("ours.pem", ours.pem()), file("others.pem", others.pem()));
    for query in ["sslmode=prefer", "sslmode=require", &trusted] {
        let encrypted = open(&database, "localhost", query).expect("opened");
        assert!(encrypted > 0, "{query}");
    }
    assert_eq!(open(&database, "localhost", "sslmode=disable"), Ok(0));
    assert!(open(&database, "localhost", &foreign).is_err(), "an authority that is not trusted");
    assert!(open(&database, "127.0.0.1", &trusted).is_err(), "a name that the certificate does not have");
}
