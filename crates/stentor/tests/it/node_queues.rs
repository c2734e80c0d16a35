//! The start of a server on a queue that other servers use: their published and leased tickets stay.

use serde_json::{Value, json};
use stentor_emulators::policy::Stall;
use stentor_emulators::{FcmConfig, FcmEmulator, Policy};
use stentor_stage::keys::Keys;
use stentor_stage::postgres::PrivatePostgres;

use crate::node_duties::{fcm_app, rows};
use crate::nodes::{Nodes, client, ended, make_app, until};

/// Leases outlast the test: a ticket that is not released is not sent.
const SETTINGS: &str = "[queue]\nengine = \"postgres\"\n[pipeline]\nlease_for_ms = 3600000\n";

/// Lists the tickets, each with the transaction of its last write.
fn tickets(database: &PrivatePostgres) -> Vec<String> {
    rows(database, "SELECT chunk, xmin FROM queue_tickets ORDER BY chunk")
}

#[tokio::test]
async fn a_server_that_starts_leaves_the_tickets_of_a_shared_queue_as_they_are() {
    let Some(mut nodes) = Nodes::new() else { return };
    let small = format!("{SETTINGS}chunk_max_devices = 2\n");
    let makes = format!("roles = [\"api\", \"scheduler\", \"producer\"]\n{small}");
    let one = nodes.start("one", &makes);
    let root = client(&one, &one.root_key());
    let app = make_app(&root, 6).await;
    let app = root.for_app(app);
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let campaign = app.post("/v1/messages", &everyone).await.unwrap()["campaign"].clone();
    until("the tickets", || tickets(&nodes.database).len() == 3).await;
    let before = tickets(&nodes.database);
    let other = nodes.start("other", &makes);
    // It reads all waiting tickets as soon as it runs; later messages it has accepted itself.
    let app = client(&other, &one.root_key()).for_app(app.app().unwrap().to_owned());
    let later = app.post("/v1/messages", &everyone).await.unwrap()["campaign"].clone();
    until("the tickets of the second campaign", || tickets(&nodes.database).len() == 6).await;
    assert_eq!(tickets(&nodes.database)[..3], before);
    let _sends = nodes.start("sends", &format!("roles = [\"consumer\"]\n{small}"));
    for campaign in [&campaign, &later] {
        assert_eq!(ended(&app, campaign).await["totals"]["accepted"], 6);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_server_had_leased_from_a_shared_queue_is_sent_as_soon_as_it_is_back() {
    let Some(mut nodes) = Nodes::new() else { return };
    let stall = Some(Stall { all: true, ..Stall::default() });
    let config = FcmConfig { policy: Policy { stall, ..Policy::default() }, ..FcmConfig::default() };
    let emulator = FcmEmulator::start(config).await.unwrap();
    let endpoint = format!("https://{}", emulator.addr());
    let credential = Keys::make().unwrap().fcm_credential(&endpoint, emulator.ca_pem().unwrap());
    let mut one = nodes.start("one", SETTINGS);
    let key = one.root_key();
    let root = client(&one, &key);
    let (app, _) = fcm_app(&root, &credential, "push", 1).await;
    // To an audience: a message to named devices is sent at once, beside the queue.
    let message = json!({"target": "everyone", "data": {"k": "v"}});
    let campaign: Value = root.for_app(app.clone()).post("/v1/messages", &message).await.unwrap();
    until("the request", || emulator.counts("push-0").attempts == 1).await;
    let leased = rows(&nodes.database, "SELECT count(*) FROM queue_tickets WHERE lease IS NOT NULL");
    assert_eq!(leased, ["1"]);
    one.process.kill();
    emulator.set_policy(Policy::default()).unwrap();
    let again = nodes.start("one", SETTINGS);
    let ledger = ended(&client(&again, &key).for_app(app), &campaign["campaign"]).await;
    assert_eq!(
        (&ledger["totals"]["accepted"], &ledger["duplicate_bound"]),
        (&json!(1), &json!(1)),
        "{ledger}"
    );
}
