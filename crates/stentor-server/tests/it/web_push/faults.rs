//! Browsers that acknowledge late, twice, never, or foreign messages, and one that is connected twice.

use std::collections::BTreeMap;

use super::*;

/// Pushes with a request for a receipt; returns the URL of the receipt.
async fn push_asking(server: &Server, url: &str) -> String {
    let pushed = push(server, url).header("Prefer", "respond-async").send().await.expect("an answer");
    assert_eq!(pushed.status(), 202);
    header(&pushed, "link").split_once('>').expect("a link").0.trim_start_matches('<').to_owned()
}

async fn is_delivered(server: &Server, receipt: &str, wait_seconds: u8) -> bool {
    let request = server.client.get(receipt).header("Prefer", format!("wait={wait_seconds}"));
    request.send().await.expect("an answer").status() == 204
}

/// Waits for this number of notifications; returns them by their versions.
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
    // Acknowledgements by a stranger, and of an unknown version.
    let mut stranger = Browser::connect(&server, &app).await;
    stranger.greet(None).await;
    stranger.subscribe(None).await;
    for notification in heard.values().chain([&json!({"version": "nonsense"})]) {
        stranger.confirm(notification, 100).await;
    }
    stranger.say(json!({})).await;
    assert_eq!(stranger.hear().await, json!({}), "nobody minds");
    // A second connection replaces the first one, and receives the unacknowledged notifications.
    let mut second = returned(&server, &app, &agent).await;
    assert_eq!(first.frame().await.0, 8, "the first one is closed");
    assert_eq!(some(&mut second, 2).await.keys().collect::<Vec<_>>(), heard.keys().collect::<Vec<_>>());
    assert!(!is_delivered(&server, &one, 0).await && !is_delivered(&server, &two, 0).await);
    // Late, and once more.
    let (version, late) = heard.first_key_value().expect("two");
    second.confirm(late, 100).await;
    second.confirm(late, 100).await;
    while is_delivered(&server, &one, 0).await == is_delivered(&server, &two, 0).await {
        tokio::task::yield_now().await;
    }
    // Never: only this one comes again.
    let mut third = returned(&server, &app, &agent).await;
    let again = some(&mut third, 1).await;
    let (left, notification) = again.first_key_value().expect("one");
    assert!(left != version && heard.contains_key(left));
    third.confirm(notification, 100).await;
    assert!(is_delivered(&server, &one, 15).await && is_delivered(&server, &two, 15).await);
    third.say(json!({})).await;
    assert_eq!(third.hear().await, json!({}), "nothing more comes");
}

#[tokio::test]
async fn pushes_whose_bodies_do_not_come_take_no_place_of_the_apps_own_requests() {
    let server = server_with(|config| {
        config.api.requests_max_count = 8;
        config.api.body_timeout_seconds = 2;
    })
    .await;
    let tenant = open_app(&server).await;
    let mut browser = Browser::connect(&server, &tenant.id).await;
    browser.greet(None).await;
    let url = browser.subscribe(None).await;
    let path = url.trim_start_matches(&server.url);
    let host = server.url.trim_start_matches("http://");
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nTTL: 60\r\nContent-Length: 100\r\n\r\nhalf");
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(host).await.expect("connected");
        stream.write_all(head.as_bytes()).await.expect("written");
        held.push(stream);
    }
    for _ in 0..20 {
        let own = server.send(&tenant, Method::GET, "/v1/devices").read().await;
        assert_eq!(own.status, 200, "{own:?}");
    }
    for mut stream in held {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "a push is still awaited");
    }
}

#[tokio::test]
async fn so_many_wait_for_one_receipt_and_the_others_are_answered_at_once() {
    let server = server().await;
    let app = open_app(&server).await.id;
    let mut browser = Browser::connect(&server, &app).await;
    browser.greet(None).await;
    let url = browser.subscribe(None).await;
    let receipt = push_asking(&server, &url).await;
    let heard = some(&mut browser, 1).await;
    let ask = async |_| {
        let started_at = std::time::Instant::now();
        let answer = server.client.get(&receipt).header("Prefer", "wait=20").send().await.expect("an answer");
        (answer.status().as_u16(), started_at.elapsed())
    };
    let confirm = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        browser.confirm(heard.values().next().expect("one"), 100).await;
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all((0..12).map(ask)), confirm);
    let waited = answers.iter().filter(|(status, _)| *status == 204).count();
    let at_once = answers.iter().filter(|(status, _)| *status == 202).count();
    assert_eq!((waited, at_once), (4, 8), "{answers:?}");
    assert!(
        answers.iter().all(|(_, took)| *took < Duration::from_secs(10)),
        "woken, not looked for: {answers:?}"
    );
}
