//! Import of devices by the line.

use reqwest::Method;
use serde_json::{Value, json};
use stentor_server::config::Engine;

use crate::harness::{Reading, Server, Tenant, durable_server, server, server_on};

const NDJSON: &str = "application/x-ndjson";

async fn import(
    server: &Server,
    tenant: &Tenant,
    query: &str,
    kind: &str,
    body: impl Into<reqwest::Body>,
) -> Value {
    let path = format!("/v1/devices/import{query}");
    let read = server.send(tenant, Method::POST, &path).header("content-type", kind).body(body).read().await;
    assert_eq!(read.status, 200, "{read:?}");
    read.body
}

fn lines(count: usize) -> String {
    (0..count)
        .map(|n| format!("{{\"platform\":\"android\",\"token\":\"token-{n}\",\"topics\":[\"all\"]}}\n"))
        .collect()
}

#[tokio::test]
async fn good_lines_stay_bad_lines_are_told_and_a_rerun_is_harmless() {
    for server in [server().await, durable_server(tempfile::tempdir().expect("a folder")).await] {
        let tenant = server.tenant().await;
        let body = "{\"platform\":\"android\",\"token\":\"a\"}\n\n{\"platform\":\"android\",\"token\":\"\"}\nnonsense\n\
                    {\"platform\":\"android\",\"token\":\"b\",\"time_zone\":\"Nowhere\"}\n{\"platform\":\"android\",\"token\":\"c\"}";
        let first = import(&server, &tenant, "", NDJSON, body).await;
        let counts = |report: &Value| {
            ["lines", "created", "updated", "failed"].map(|key| report[key].as_u64().expect("a count"))
        };
        assert_eq!(counts(&first), [5, 2, 0, 3], "{first}");
        let reported: Vec<_> = first["errors"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|error| (error["line"].clone(), error["field"].clone()))
            .collect();
        assert_eq!(
            reported,
            [(json!(3), json!("token")), (json!(4), Value::Null), (json!(5), json!("time_zone"))]
        );
        assert_eq!(first["errors_truncated"], false);
        let again = import(&server, &tenant, "", NDJSON, body).await;
        assert_eq!(counts(&again), [5, 0, 2, 3], "{again}");
        let listed = server.get(&tenant, "/v1/devices").await;
        assert_eq!(listed["devices"].as_array().expect("a list").len(), 2);
    }
}

#[tokio::test]
async fn lines_name_platforms_as_people_do_and_a_refused_word_is_answered_with_the_right_ones() {
    let server = server().await;
    let tenant = server.tenant().await;
    let (phone, tablet) = ("0a".repeat(32), "0c".repeat(32));
    let ndjson = format!(
        "{{\"platform\":\"iOS\",\"token\":\"{phone}\"}}\n{{\"platform\":\"Symbian\",\"token\":\"b\"}}\n"
    );
    let csv = format!("platform,token\niPadOS,{tablet}\nHuawei,d\n");
    for (format, kind, body) in [("ndjson", NDJSON, ndjson), ("CSV", "text/csv", csv)] {
        let report = import(&server, &tenant, &format!("?format={format}"), kind, body).await;
        assert_eq!((&report["created"], &report["failed"]), (&json!(1), &json!(1)), "{report}");
        let hint = report["errors"][0]["hint"].as_str().expect("a hint");
        assert!(
            hint.ends_with(
                "known are android, apple, ios, ipados, macos, watchos, tvos, visionos, web, windows, linux"
            ),
            "{hint}"
        );
    }
}

#[tokio::test]
async fn a_line_whose_token_is_too_long_is_told_with_the_limit() {
    let server = server().await;
    let tenant = server.tenant().await;
    let (longest, too_long) = ("0".repeat(4_096), "0".repeat(4_098));
    let line = |platform, token| format!("{}\n", json!({"platform": platform, "token": token}));
    let ndjson = [line("apple", &longest), line("apple", &too_long), line("android", &longest)].concat();
    let csv = format!("platform,token\napple,{too_long}\n");
    for (query, kind, body) in [("", NDJSON, ndjson), ("?format=csv", "text/csv", csv)] {
        let report = import(&server, &tenant, query, kind, body).await;
        let error = &report["errors"][0];
        assert_eq!((&report["failed"], &error["line"]), (&json!(1), &json!(2)), "{report}");
        assert_eq!((&error["code"], &error["field"]), (&json!("invalid_field"), &json!("token")), "{report}");
        assert!(error["detail"].as_str().is_some_and(|detail| detail.contains("4096 bytes")), "{report}");
    }
}

#[tokio::test]
async fn a_dry_run_checks_everything_and_keeps_nothing() {
    let server = server().await;
    let tenant = server.tenant().await;
    let body = format!("{}nonsense\n", lines(10));
    let report = import(&server, &tenant, "?dry_run=true", NDJSON, body).await;
    assert_eq!(
        (&report["dry_run"], &report["lines"], &report["valid"], &report["failed"]),
        (&json!(true), &json!(11), &json!(10), &json!(1))
    );
    assert_eq!((&report["created"], &report["updated"]), (&json!(0), &json!(0)));
    assert_eq!(server.get(&tenant, "/v1/devices").await["devices"], json!([]));
}

#[tokio::test]
async fn a_dry_run_refuses_what_the_store_would_refuse() {
    for durable in [false, true] {
        let server = if durable {
            durable_server(tempfile::tempdir().expect("a folder")).await
        } else {
            server().await
        };
        let tenant = server.tenant().await;
        let most = stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
        let topics: Vec<_> = (0..most).map(|number| format!("topic{number}")).collect();
        let full = json!({"platform": "android", "token": "full", "topics": topics[..most / 2]});
        import(&server, &tenant, "", NDJSON, format!("{full}\n")).await;
        let rest = topics[most / 2..].iter().cloned().chain(["beyond".to_owned()]).collect::<Vec<_>>();
        let over_limit = json!({"platform": "android", "token": "full", "topics": rest});
        let body = format!("{}{over_limit}\n", lines(3));
        let report = import(&server, &tenant, "?dry_run=true", NDJSON, body.clone()).await;
        assert_eq!((&report["valid"], &report["failed"]), (&json!(3), &json!(1)), "{report}");
        assert_eq!(
            (&report["errors"][0]["line"], &report["errors"][0]["code"]),
            (&json!(4), &json!("limit_reached"))
        );
        assert_eq!(server.get(&tenant, "/v1/devices").await["devices"].as_array().expect("a list").len(), 1);
        let real = import(&server, &tenant, "", NDJSON, body).await;
        assert_eq!(real["errors"], report["errors"], "a dry run says what the real one will");
    }
}

#[tokio::test]
async fn csv_is_decided_by_content_type_or_query() {
    let server = server().await;
    let tenant = server.tenant().await;
    let body = "platform,token,user,topics\nandroid,a,\"Smith, Anna\",news;sport\nandroid,b,,\n";
    let report = import(&server, &tenant, "", "text/csv; charset=utf-8", body).await;
    assert_eq!(report["created"], 2, "{report}");
    let report = import(&server, &tenant, "?format=csv", "application/octet-stream", body).await;
    assert_eq!(report["updated"], 2, "{report}");
    assert_eq!(server.get(&tenant, "/v1/topics/sport").await["device_count"], 1);
    assert_eq!(
        server.get(&tenant, "/v1/users/Smith%2C%20Anna").await["devices"].as_array().expect("a list").len(),
        1
    );
}

#[tokio::test]
async fn a_csv_header_that_makes_no_sense_is_refused_as_a_whole() {
    let server = server().await;
    let tenant = server.tenant().await;
    for body in ["", "platform,tokn\nandroid,a\n", "token\na\n"] {
        let read =
            server.send(&tenant, Method::POST, "/v1/devices/import").header("content-type", "text/csv");
        let refusal = read.body(body).read().await.refusal();
        assert_eq!(refusal, (422, "invalid_field".to_owned(), Some("header".to_owned())), "{body:?}");
    }
}

#[tokio::test]
async fn an_unknown_format_is_refused() {
    let server = server().await;
    let tenant = server.tenant().await;
    let read = server.send(&tenant, Method::POST, "/v1/devices/import").body("x").read().await;
    assert_eq!(read.refusal().1, "unsupported_media_type");
    let read = server.send(&tenant, Method::POST, "/v1/devices/import?format=xml").body("x").read().await;
    assert_eq!(read.refusal().2.as_deref(), Some("format"));
}

#[tokio::test]
async fn many_lines_in_many_small_pieces_are_all_registered() {
    let server = server().await;
    let tenant = server.tenant().await;
    let body = lines(25_000);
    let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
        body.as_bytes().chunks(8_191).map(|piece| Ok(piece.to_vec())).collect();
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let report = import(&server, &tenant, "", NDJSON, stream).await;
    assert_eq!((&report["created"], &report["failed"]), (&json!(25_000), &json!(0)));
    assert_eq!(server.get(&tenant, "/v1/topics/all").await["device_count"], 25_000);
}

#[tokio::test]
async fn only_the_first_thousand_errors_are_listed_but_all_are_counted() {
    let server = server().await;
    let tenant = server.tenant().await;
    let body = format!("{}{}", "nonsense\n".repeat(2_500), lines(3));
    let report = import(&server, &tenant, "", NDJSON, body).await;
    assert_eq!((&report["failed"], &report["created"]), (&json!(2_500), &json!(3)));
    let errors = report["errors"].as_array().expect("a list");
    assert_eq!((errors.len(), &report["errors_truncated"]), (1_000, &json!(true)));
    assert_eq!(errors[999]["line"], 1_000);
}

#[tokio::test]
async fn a_line_without_end_costs_only_itself_and_no_memory() {
    let server = server().await;
    let tenant = server.tenant().await;
    let good = lines(1);
    let long = vec![b'x'; 8 * 1_024 * 1_024];
    let body = [long.as_slice(), b"\n", good.as_bytes()].concat();
    let report = import(&server, &tenant, "", NDJSON, body).await;
    assert_eq!((&report["created"], &report["errors"][0]["code"]), (&json!(1), &json!("payload_too_large")));
}

#[tokio::test]
async fn an_empty_body_is_an_import_of_nothing() {
    let server = server().await;
    let tenant = server.tenant().await;
    assert_eq!(import(&server, &tenant, "", NDJSON, "").await["lines"], 0);
}

/// The first batch takes long to write and is refused at its end. The second is parsed during that time and waits at the store, so that it
/// is written before the rest of the first.
#[tokio::test]
async fn the_later_of_two_lines_for_a_token_wins_though_its_batch_overtakes_a_refused_one() {
    let server = server_on(Engine::Sqlite, |config| config.api.import_batch_max_lines = 500).await;
    let tenant = server.tenant().await;
    let most = stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
    let android = |token: &str, topics: std::ops::Range<usize>| {
        let topics: Vec<String> = topics.map(|n| format!("topic{n}")).collect();
        json!({"platform": "android", "token": token, "topics": topics}).to_string() + "\n"
    };
    import(&server, &tenant, "", NDJSON, android("full", 0..most / 2)).await;
    let apple = |n: usize, user: &str| {
        format!("{{\"platform\":\"apple\",\"token\":\"{n:064x}\",\"user\":\"{user}\"}}\n")
    };
    let light = |from: usize, to: usize| (from..to).map(|n| apple(n, "crowd")).collect::<String>();
    let heavy =
        |from: usize, to: usize| (from..to).map(|n| android(&format!("h{n}"), 0..40)).collect::<String>();
    let first = [apple(0, "early"), heavy(0, 480), android("full", most / 2..most + 1)].concat();
    let second = [heavy(480, 600), light(1, 4_000), apple(0, "late")].concat();
    let report = import(&server, &tenant, "", NDJSON, first + &second).await;
    assert_eq!((&report["lines"], &report["failed"]), (&json!(4_602), &json!(1)), "{report}");
    assert_eq!((&report["created"], &report["updated"]), (&json!(4_600), &json!(1)), "{report}");
    let devices = |user: Value| user["devices"].as_array().map_or(0, Vec::len);
    assert_eq!(devices(server.get(&tenant, "/v1/users/late").await), 1);
    let metrics = server.root(Method::GET, "/metrics").read().await.body.to_string();
    assert!(metrics.contains("stentor_devices_updated_total 1\\n"), "written twice, counted once: {metrics}");
}
