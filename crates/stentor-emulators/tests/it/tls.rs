//! TLS: our authority, both protocols on one port, and h2 alone on the other.

use crate::rig::{hex, to_token};
use reqwest::{Certificate, Client, ClientBuilder, Version};
use stentor_emulators::{
    ApnsConfig, ApnsEmulator, ApnsOptions, FcmConfig, FcmEmulator, SinkConfig, SinkEmulator, TlsConfig,
};

fn trusting(ca_pem: &str) -> ClientBuilder {
    Client::builder().tls_certs_only([Certificate::from_pem(ca_pem.as_bytes()).unwrap()])
}

#[tokio::test]
async fn fcm_speaks_both_protocols_under_its_own_name() {
    let mut config = FcmConfig::default();
    config.vendor.auth.required = false;
    let fcm = FcmEmulator::start(config).await.unwrap();
    let name = "fcm.googleapis.com";
    let url = format!("https://{name}:{}/v1/projects/p/messages:send", fcm.addr().port());
    let client = trusting(fcm.ca_pem().unwrap()).resolve(name, fcm.addr());
    for (client, version) in [
        (client.build().unwrap(), Version::HTTP_2),
        (
            trusting(fcm.ca_pem().unwrap()).resolve(name, fcm.addr()).http1_only().build().unwrap(),
            Version::HTTP_11,
        ),
    ] {
        let reply = client.post(&url).json(&to_token("abc")).send().await.unwrap();
        assert_eq!((reply.status().as_u16(), reply.version()), (200, version));
    }
}

#[tokio::test]
async fn apns_speaks_http_2_alone() {
    let apns = ApnsEmulator::start(ApnsConfig {
        vendor: ApnsOptions { require_token: false, ..ApnsOptions::default() },
        ..ApnsConfig::default()
    })
    .await
    .unwrap();
    let url = format!("https://localhost:{}/3/device/{}", apns.addr().port(), hex(1));
    let client = trusting(apns.ca_pem().unwrap()).build().unwrap();
    let push = client.post(&url).header("apns-topic", "a").body("{}");
    assert_eq!(push.send().await.unwrap().status(), 200);
    let old = trusting(apns.ca_pem().unwrap()).http1_only().build().unwrap();
    assert!(old.post(&url).send().await.is_err());
}

#[tokio::test]
async fn emulators_with_one_directory_share_an_authority() {
    let directory = tempfile::tempdir().unwrap();
    let tls = TlsConfig::Authority { directory: Some(directory.path().to_owned()) };
    let start =
        |tls: &TlsConfig| SinkEmulator::start(SinkConfig { tls: tls.clone(), ..SinkConfig::default() });
    let (first, second) = tokio::join!(start(&tls), start(&tls));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.ca_pem(), second.ca_pem());
    let ca_pem = std::fs::read_to_string(directory.path().join("ca.pem")).unwrap();
    let client = trusting(&ca_pem).build().unwrap();
    for sink in [&first, &second] {
        let reply = client.post(format!("https://localhost:{}/", sink.addr().port())).send().await.unwrap();
        assert_eq!(reply.status(), 200);
    }
}
