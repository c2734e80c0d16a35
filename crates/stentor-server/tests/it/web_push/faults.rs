//! Browsers that acknowledge late, twice, never, or what they never got, and one that is in two places.

use std::collections::BTreeMap;

use super::*;

/// Pushes with the wish to know of the receipt; returns where that is told.
async fn push_asking(server: &Server, url: &str) -> String {
    let pushed = push(server, url).header("Prefer", "respond-async").send().await.expect("an answer");
    assert_eq!(pushed.status(), 202);
    header(&pushed, "link").split_once('>').expect("a link").0.trim_start_matches('<').to_owned()
}

async fn is_delivered(server: &Server, receipt: &str, wait_seconds: u8) -> bool {
    let asked = server.client.get(receipt).header("Prefer", format!("wait={wait_seconds}"));
    asked.send().await.expect("an answer").status() == 204
}

/// Hears so many notifications, by their versions.
async fn some(browser: &mut Browser, count: usize) -> BTreeMap<String, Value> {
    let mut heard = BTreeMap::new();
    while heard.len() < count {
        let notification = browser.hear().await;
        assert_eq!(notification["messageType"], json!("notification"));
        heard.insert(notification["version"].as_str().expect("a version").to_owned(), notification);
    }
    heard
}

#[tokio::test]
async fn r16_over_autopush_each_message_is_delivered_once_however_it_is_acknowledged() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut first = Browser::connect(&server, &app).await;
    let agent = first.greet(None).await;
    let url = first.subscribe(None).await;
    let (one, two) = (push_asking(&server, &url).await, push_asking(&server, &url).await);
    let heard = some(&mut first, 2).await;
    // Never given to it, or to nobody.
    let mut stranger = Browser::connect(&server, &app).await;
    stranger.greet(None).await;
    stranger.subscribe(None).await;
    for notification in heard.values().chain([&json!({"version": "nonsense"})]) {
        stranger.confirm(notification, 100).await;
    }
    stranger.say(json!({})).await;
    assert_eq!(stranger.hear().await, json!({}), "nobody minds");
    // A second connection takes the first one's place, and hears what was never acknowledged.
    let mut second = returned(&server, &app, &agent).await;
    assert_eq!(first.frame().await.0, 8, "the first one is closed");
    assert_eq!(some(&mut second, 2).await.keys().collect::<Vec<_>>(), heard.keys().collect::<Vec<_>>());
    assert!(!is_delivered(&server, &one, 0).await && !is_delivered(&server, &two, 0).await);
    // Late, and again.
    let (version, late) = heard.first_key_value().expect("two");
    second.confirm(late, 100).await;
    second.confirm(late, 100).await;
    while is_delivered(&server, &one, 0).await == is_delivered(&server, &two, 0).await {
        tokio::task::yield_now().await;
    }
    // Never: it comes again, alone.
    let mut third = returned(&server, &app, &agent).await;
    let again = some(&mut third, 1).await;
    let (left, notification) = again.first_key_value().expect("one");
    assert!(left != version && heard.contains_key(left));
    third.confirm(notification, 100).await;
    assert!(is_delivered(&server, &one, 15).await && is_delivered(&server, &two, 15).await);
    third.say(json!({})).await;
    assert_eq!(third.hear().await, json!({}), "nothing more comes");
}
