use stentor_core::device::{Platform, ProviderKind, PushToken};
use stentor_core::name::TopicName;

use stentor_core::id::AppId;
use stentor_core::time::Timestamp;

use super::*;
use crate::sqlite::migrations;
use crate::sqlite::store::tokens;

const APP: AppId = AppId::from_raw(1);
const TOPICS: usize = 2_000;

fn store() -> Connection {
    let connection = Connection::open_in_memory().expect("opened");
    migrations::run(&connection, migrations::STORE).expect("made");
    connection.execute("INSERT INTO apps (id, name, created_at) VALUES (1, 'app', 0)", []).expect("written");
    connection
}

fn heavy(count: usize) -> Vec<Registration> {
    let topics: Vec<_> =
        (0..TOPICS).map(|no| TopicName::new(format!("topic-{no}")).expect("a topic")).collect();
    let one = |no: usize| {
        let token = PushToken::new(format!("token-{no}")).expect("a token");
        let plain = Registration::new(Platform::Android, ProviderKind::Fcm, token);
        Registration { topics: topics.clone(), ..plain }
    };
    (0..count).map(one).collect()
}

#[test]
fn registrations_with_much_beside_them_take_several_transactions_of_bounded_size() {
    let (connection, given) = (store(), heavy(12));
    let (mut done, mut steps) = (0, 0);
    while done < given.len() {
        let batch = RegistrationBatch::new(APP, &given[done..], Timestamp::from_millis(0), tokens::hash);
        let before = connection.total_changes();
        let count = some(&connection, &batch).expect("registered").len();
        assert!((1..given.len()).contains(&count), "{count} at once");
        let changed = connection.total_changes() - before;
        (done, steps) = (done + count, steps + 1);
        // One more registration, its topics new, and its own row.
        assert!(changed <= ROWS_MAX_COUNT + 4 * TOPICS as u64, "{changed} rows at once");
    }
    assert!(steps >= 3, "{steps} transactions");
    let count = |sql| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).expect("counted");
    assert_eq!(count("SELECT count(*) FROM devices") as usize, given.len());
    assert_eq!(count("SELECT count(*) FROM subscriptions") as usize, given.len() * TOPICS);
    assert_eq!(count("SELECT min(device_count) FROM topics") as usize, given.len());
}

#[test]
fn plain_registrations_all_fit_one_transaction() {
    let connection = store();
    let mut given = heavy(2_000);
    given.iter_mut().for_each(|one| one.topics.clear());
    let batch = RegistrationBatch::new(APP, &given, Timestamp::from_millis(0), tokens::hash);
    let portion = Portion::of(&connection, ROWS_MAX_COUNT, Duration::from_secs(60));
    assert_eq!(up_to(&connection, &batch, &portion).expect("registered").len(), given.len());
}

#[test]
fn a_device_with_many_topics_is_registered_in_parts_that_have_all_of_them() {
    let one = &heavy(1)[0];
    assert!(takes_parts(one));
    let parts: Vec<_> = parts(one).collect();
    assert!(parts.iter().all(|part| !takes_parts(part) && part.token == one.token));
    let topics: Vec<_> = parts.into_iter().flat_map(|part| part.topics).collect();
    assert_eq!(topics, one.topics);
}
