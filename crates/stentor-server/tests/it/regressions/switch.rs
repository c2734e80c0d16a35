//! A change of the queue's engine between two starts, with a backlog.

use reqwest::Method;
use serde_json::{Value, json};
use stentor_server::config::QueueEngine;

use crate::foreign::{ForeignServer, nats, postgres};
use crate::harness::{Reading, Server, Tenant, durable_server_with};

const DEVICES: u64 = 250;

#[tokio::test]
async fn r20_a_backlog_outlives_every_change_of_the_queue_s_engine_and_is_sent_once() {
    let others = Others { postgres: postgres(), nats: nats() };
    let mut server = start(None, QueueEngine::Sqlite, &others).await;
    let tenant = audience(&server).await;
    let mut campaigns = vec![send(&server, &tenant).await];
    for engine in others.engines() {
        server = start(Some(server), engine, &others).await;
        for campaign in &campaigns {
            let ledger = waiting(&server, &tenant, campaign).await;
            assert_eq!(ledger["attempts"], 0, "{engine:?}: {ledger}");
        }
        campaigns.push(send(&server, &tenant).await);
    }
    credential(&server, &tenant, Method::PUT).await;
    for campaign in &campaigns {
        let ledger = server.ended(&tenant, campaign).await;
        let books = [&ledger["totals"]["accepted"], &ledger["attempts"], &ledger["audience"]];
        assert_eq!(books.map(Value::as_u64), [Some(DEVICES); 3], "{ledger}");
        assert_eq!((&ledger["balanced"], &ledger["duplicate_bound"]), (&json!(true), &json!(0)), "{ledger}");
    }
}

/// The installed third-party servers that a queue may use.
struct Others {
    postgres: Option<ForeignServer>,
    nats: Option<ForeignServer>,
}

impl Others {
    /// Lists the engines in an order in which each follows each other kind, and itself.
    fn engines(&self) -> Vec<QueueEngine> {
        use QueueEngine::{Memory, Nats, Postgres, Sqlite};
        let order = [
            Memory, Sqlite, Postgres, Memory, Memory, Nats, Postgres, Nats, Sqlite, Nats, Nats, Memory,
            Postgres, Postgres, Sqlite,
        ];
        let is_here = |engine: &QueueEngine| match engine {
            Postgres => self.postgres.is_some(),
            Nats => self.nats.is_some(),
            Memory | Sqlite => true,
        };
        order.into_iter().filter(is_here).collect()
    }
}

/// Stops a server and starts it again on the same store, with a queue of this engine.
async fn start(before: Option<Server>, engine: QueueEngine, others: &Others) -> Server {
    let folder = match before {
        Some(server) => server.stop().await,
        None => tempfile::tempdir().expect("a folder"),
    };
    durable_server_with(folder, |config| {
        config.queue.engine = engine;
        if let Some(postgres) = &others.postgres {
            config.store.url = postgres.url().to_owned().into();
        }
        if let Some(nats) = &others.nats {
            config.queue.url = nats.url().to_owned().into();
        }
        config.pipeline.chunk_max_devices = 50;
    })
    .await
}

/// Creates an app with devices, and deletes their credential for the time being.
async fn audience(server: &Server) -> Tenant {
    let tenant = server.sender().await;
    crate::tenants::put_fcm(server, &tenant).await;
    let line =
        |number| format!("{{\"platform\":\"android\",\"provider\":\"null\",\"token\":\"token-{number}\"}}\n");
    let lines: String = (0..DEVICES).map(line).collect();
    let import = server.send(&tenant, Method::POST, "/v1/devices/import");
    let report = import.header("content-type", "application/x-ndjson").body(lines).read().await;
    assert_eq!(report.body["created"], DEVICES, "{report:?}");
    credential(server, &tenant, Method::DELETE).await;
    tenant
}

async fn credential(server: &Server, tenant: &Tenant, method: Method) {
    let path = format!("/v1/apps/{}/credentials/null", tenant.id);
    let read = server.send(tenant, method, &path).json(&json!({})).read().await;
    assert_eq!(read.status, 204, "{read:?}");
}

async fn send(server: &Server, tenant: &Tenant) -> String {
    let sent = server.post(tenant, "/v1/messages", json!({"target": "everyone", "data": {"k": "v"}})).await;
    let campaign = sent["campaign"].as_str().expect("an id").to_owned();
    waiting(server, tenant, &campaign).await;
    campaign
}

/// Waits until the whole audience is queued; returns the books.
async fn waiting(server: &Server, tenant: &Tenant, campaign: &str) -> Value {
    loop {
        let ledger = server.get(tenant, &format!("/v1/campaigns/{campaign}")).await;
        if ledger["totals"]["queued"] == DEVICES {
            return ledger;
        }
        assert_eq!(ledger["totals"]["accepted"], 0, "{ledger}");
        tokio::task::yield_now().await;
    }
}
