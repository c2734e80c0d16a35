//! Database errors that prove nothing about a row, whatever their code: no chunk and no campaign ends because of them.

use stentor_core::campaign::CampaignState;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    BrokenWork, Expansion, HealthStore, Idempotent, PipelineStore, ProducerTask, StoreError,
};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, accept_all, at};
use stentor_storage::postgres::{PostgresSettings, PostgresStore};

use crate::postgres_server::{TestDatabase, server};

/// A catch-all code, the code of any trigger's error, and codes that would be damage if a row of ours proved it.
const CODES: [&str; 8] = ["XX000", "P0001", "22003", "22P02", "23505", "23514", "53100", "58030"];

/// Makes every change of a table fail with a code.
fn break_table(database: &TestDatabase, table: &str, code: &str) {
    database.command(&format!(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{code}'; END $$;
        CREATE TRIGGER failing BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION fail()"
    ));
}

fn mend(database: &TestDatabase) {
    database.command("DROP FUNCTION fail() CASCADE");
}

fn unavailable<T: std::fmt::Debug>(done: Result<T, StoreError>, when: &str) {
    assert!(matches!(done, Err(StoreError::Unavailable(_))), "{when}: {done:?}");
}

#[tokio::test]
async fn whatever_code_a_trouble_has_it_ends_no_campaign_and_fails_no_delivery() {
    let Some(server) = server() else { return };
    let database = server.database();
    let store = PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
    let scene = Scene::new(&store).await;
    scene.fcm(3).await;
    for code in CODES {
        let new = scene.new_message(Draft::to(Target::Everyone));
        let id = new.message.id;
        assert_eq!(scene.accept(new).await, Ok(Idempotent::Done(())));
        break_table(&database, "campaigns", code);
        unavailable(store.start_due(100, 1_000, at(0)).await, code);
        mend(&database);
        scene.start(at(0)).await;
        let task = ProducerTask { message: id, app: scene.app, provider: ProviderKind::Fcm };
        let how = Expansion { chunk_max_devices: 1_000, max_chunks: 10, now: at(0) };
        break_table(&database, "chunks", code);
        unavailable(store.expand(task, how).await, code);
        mend(&database);
        break_table(&database, "ledgers", code);
        unavailable(store.quarantine(BrokenWork::Producer(task), at(0)).await, code);
        mend(&database);
        let tickets = store.expand(task, how).await.expect("expanded").tickets;
        let leased = scene.lease(tickets[0].chunk, at(1)).await;
        break_table(&database, "chunks", code);
        unavailable(store.settle(vec![accept_all(&leased, at(2))]).await, code);
        mend(&database);
        scene.settled(accept_all(&leased, at(2))).await;
        assert_eq!(scene.state(id).await, CampaignState::Finished, "{code}");
        assert_eq!(scene.books(id).await.tally.accepted, 3, "{code}");
    }
    assert_eq!(store.figures().await.expect("read").damaged_rows, 0);
}

#[tokio::test]
async fn a_constraint_of_our_own_table_is_damage_of_the_row_that_breaks_it() {
    let Some(server) = server() else { return };
    let database = server.database();
    let store = PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
    let scene = Scene::new(&store).await;
    scene.fcm(1).await;
    let new = scene.new_message(Draft::to(Target::Everyone));
    let id = new.message.id;
    assert_eq!(scene.accept(new).await, Ok(Idempotent::Done(())));
    let running = CampaignState::Running.code();
    database.command(&format!(
        "ALTER TABLE campaigns ADD CONSTRAINT own CHECK (id <> {} OR state <> {running}) NOT VALID",
        id.raw()
    ));
    scene.start(at(0)).await;
    let campaign = scene.ledger(id).await.campaign;
    assert_eq!(campaign.state, CampaignState::Stopped);
    assert_eq!(campaign.stop.expect("a stop").reason, Reason::Damaged);
}

#[tokio::test]
async fn a_producer_given_up_beside_damaged_books_leaves_a_campaign_that_says_it_was_stopped() {
    let Some(server) = server() else { return };
    let database = server.database();
    let store = PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
    let scene = Scene::new(&store).await;
    scene.fcm(2).await;
    let (id, _) = scene.send(Draft::to(Target::Everyone)).await;
    database.command("UPDATE ledgers SET queued = -1");
    let task = ProducerTask { message: id, app: scene.app, provider: ProviderKind::Fcm };
    store.quarantine(BrokenWork::Producer(task), at(1)).await.expect("given up");
    let campaign = scene.ledger(id).await.campaign;
    assert_eq!(campaign.state, CampaignState::Stopped);
    assert_eq!(campaign.stop.expect("it is no campaign without an audience").reason, Reason::Damaged);
}

#[tokio::test]
async fn transactions_are_read_committed_whatever_the_database_prefers() {
    let Some(server) = server() else { return };
    let database = server.database();
    let name = database.name();
    database.command(&format!(
        "ALTER DATABASE {name} SET default_transaction_isolation = 'serializable';
        ALTER DATABASE {name} SET lock_timeout = '1ms'; ALTER DATABASE {name} SET idle_session_timeout = '20s';
        CREATE FUNCTION check_isolation() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN ASSERT current_setting('transaction_isolation') = 'read committed'
                AND current_setting('lock_timeout') = '0' AND current_setting('idle_session_timeout') = '0';
            RETURN NEW; END $$;
        CREATE TRIGGER isolation BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION check_isolation()"
    ));
    let store = PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
    let scene = Scene::new(&store).await;
    scene.fcm(1).await;
    assert_eq!(scene.accept(scene.new_message(Draft::to(Target::Everyone))).await, Ok(Idempotent::Done(())));
}
