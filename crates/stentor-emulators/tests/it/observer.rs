//! The observer's file: an emulator's counts are available to the next emulator and to readers.

use crate::rig::{self, Client, hex};
use serde_json::json;
use stentor_emulators::{ApnsConfig, ApnsOptions, ObserverConfig, ObserverFile, RunningApns};

async fn apns(path: &std::path::Path) -> RunningApns {
    let observer = ObserverConfig { path: Some(path.to_owned()), capacity_tokens: 1000 };
    rig::apns_with(ApnsConfig {
        vendor: ApnsOptions { require_token: false, ..ApnsOptions::default() },
        observer,
        ..ApnsConfig::default()
    })
    .await
}

#[tokio::test]
async fn counts_go_on_where_the_emulator_before_ended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("observer");
    for round in 1..=2 {
        let apns = apns(&path).await;
        let mut client = Client::connect(apns.addr()).await;
        client.push(&hex(1)).await.unwrap();
        client.push(&hex(round + 1)).await.unwrap();
        let file = ObserverFile::open(&path).unwrap();
        assert_eq!(file.lookup(&hex(1)).accepted, round, "a reader sees it while the emulator runs");
        apns.stop().await;
    }
    let file = ObserverFile::open(&path).unwrap();
    let totals = file.totals();
    assert_eq!((totals.tokens, totals.accepted, totals.tokens_accepted_twice), (3, 4, 1));
    assert_eq!(file.lookup(&hex(9)), stentor_emulators::Counts::default());
}

#[tokio::test]
async fn a_realistic_mix_answers_the_same_in_every_run() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let apns = rig::apns(json!({"mix": "realistic"})).await;
        let mut client = Client::connect(apns.addr()).await;
        let mut statuses = Vec::new();
        for number in 0..500 {
            statuses.push(client.push(&hex(number)).await.unwrap().status.as_u16());
        }
        seen.push(statuses);
    }
    assert_eq!(seen[0], seen[1]);
    let rejected = seen[0].iter().filter(|status| **status != 200).count();
    assert!((3..60).contains(&rejected), "{rejected} of 500");
}
