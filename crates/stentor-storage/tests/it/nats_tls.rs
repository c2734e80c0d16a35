//! TLS and passwords to NATS, against a real server: required, verified and used as the address says.

use std::path::Path;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use stentor_core::ports::queue::{Queue, QueueError};
use stentor_storage::nats::{NatsQueue, NatsSettings};

use crate::nats_server::{NatsServer, server};

/// An authority of the test's own.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

async fn use_queue(url: &str) -> Result<(), QueueError> {
    let settings = NatsSettings { reply_timeout: Duration::from_secs(10), ..NatsSettings::default() };
    NatsQueue::new(url.parse().expect("an address"), settings).keeps().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_required_and_verified_and_a_password_comes_from_its_file() {
    if server().is_none() {
        return;
    }
    let (ours, others, folder) = (authority(), authority(), tempfile::tempdir().expect("a folder"));
    let key = KeyPair::generate().expect("a key");
    let names = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = names.signed_by(&key, &ours).expect("signed");
    let file = |name, text: &str| write(folder.path(), name, text);
    let arguments = [
        "--tls".to_owned(),
        format!("--tlscert={}", file("tls.crt", &certificate.pem())),
        format!("--tlskey={}", file("tls.key", &key.serialize_pem())),
        "--user=me".to_owned(),
        "--pass=secret".to_owned(),
    ];
    let nats = NatsServer::start("-tls", &arguments).expect("it is installed");
    let (trusted, foreign) = (file("ours.pem", &ours.pem()), file("others.pem", &others.pem()));
    let (right, wrong) = (file("right", "secret\n"), file("wrong", "guess\n"));
    let url = |roots: &str, password: &str| {
        format!("tls://me@localhost:{}?sslrootcert={roots}&password_file={password}", nats.port())
    };
    assert_eq!(use_queue(&url(&trusted, &right)).await, Ok(()));
    for refused in [url(&foreign, &right), url(&trusted, &wrong)] {
        let message = use_queue(&refused).await.expect_err("refused").to_string();
        assert!(!message.contains("secret") && !message.contains("guess"), "{message}");
    }
    let by_address = url(&trusted, &right).replace("localhost", "127.0.0.1");
    assert!(use_queue(&by_address).await.is_err(), "a name that the certificate does not have");
}
