use std::collections::HashSet;

use stentor_emulators::{SinkConfig, SinkEmulator};

use super::*;

#[test]
fn every_token_is_another_one() {
    let tokens: HashSet<String> = (0..20_000).map(LoadSpec::path).collect();
    assert_eq!(tokens.len(), 20_000);
    assert!(tokens.iter().all(|path| path.len() == "/3/device/".len() + TOKEN_DIGITS));
}

#[test]
fn the_payload_is_as_long_as_it_says() {
    assert_eq!(LoadSpec::body().len(), 259);
    assert!(serde_json::from_str::<serde_json::Value>(LoadSpec::body()).is_ok());
}

#[tokio::test]
async fn every_request_reaches_the_sink_once() {
    let sink = SinkEmulator::start(SinkConfig { max_concurrent_streams: 50, ..SinkConfig::default() })
        .await
        .expect("a sink");
    let address = sink.addr();
    let endpoint = Endpoint {
        server_name: Some("localhost".into()),
        roots: Roots::Pem(sink.ca_pem().expect("TLS").to_owned().into()),
        ..Endpoint::new(address.ip().to_string(), address.port())
    };
    let load = LoadSpec { endpoint, requests: 5_500, connections: 2, streams: 50 };
    let outcome = load.run().await.expect("a usable endpoint");
    assert_eq!((outcome.succeeded, outcome.failed), (5_500, 0));
    assert_eq!(sink.requests(), 5_500);
    sink.stop().await;
}
