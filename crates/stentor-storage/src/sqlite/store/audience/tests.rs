use rusqlite::StatementStatus;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;

use super::*;
use crate::sqlite::migrations;

/// Creates a file with one group of `count` users, each with a device; every tenth device is also a member by itself.
fn group_of(count: i64) -> Connection {
    let connection = Connection::open_in_memory().expect("opened");
    migrations::run(&connection, migrations::STORE).expect("made");
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
    let people = format!("{rows} INSERT INTO user_devices (owner, key) SELECT i, 1 << 40 | i FROM n");
    let members =
        format!("{rows} INSERT INTO group_users (grp, external_id, owner) SELECT 1, 'u' || i, i FROM n");
    let devices = format!(
        "{rows} INSERT INTO devices (key, token_since, registered_at, platform, listed, token)
         SELECT 1 << 40 | i, 0, 0, 1, 1, 't' || i FROM n"
    );
    let direct = format!(
        "{rows} INSERT INTO group_devices (grp, device, key) SELECT 1, i, 1 << 40 | i FROM n WHERE i % 10 = 0"
    );
    let through =
        format!("{rows} INSERT INTO group_user_devices (grp, key, owner) SELECT 1, 1 << 40 | i, i FROM n");
    for sql in [people, members, through, devices, direct] {
        connection.execute(&sql, [count]).expect("written");
    }
    connection
}

fn stretch(after: u64, max: usize) -> Stretch {
    let fleet = AppProvider { no: 1, app: AppId::from_raw(1), provider: ProviderKind::Fcm };
    Stretch { fleet, after: DeviceId::from_raw(after), as_of: DeviceId::from_raw(u64::MAX >> 24), max }
}

/// Counts the steps of the engine for one step of the audience.
fn cost_of_a_step(count: i64, after: u64) -> i32 {
    let connection = group_of(count);
    let mut found = AudiencePart::default();
    let next = members(&connection, 1, stretch(after, 50), &mut found).expect("read");
    assert_eq!(next.map(DeviceId::raw), Some(after + 50));
    assert_eq!(found.devices, (after + 1..=after + 50).map(DeviceId::from_raw).collect::<Vec<_>>());
    let statement = connection.prepare_cached(OF_GROUP).expect("kept");
    statement.get_status(StatementStatus::VmStep)
}

#[test]
fn a_step_through_a_group_costs_the_same_however_large_the_group_is() {
    let small = cost_of_a_step(200, 0);
    let (large, late) = (cost_of_a_step(20_000, 0), cost_of_a_step(20_000, 15_000));
    assert!(small > 0 && large < small * 2 && late < small * 2, "{small}, {large}, {late}");
}

#[test]
fn a_step_through_a_group_sorts_nothing() {
    let connection = group_of(100);
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {OF_GROUP}")).expect("prepared");
    let lines = statement.query_map([1, 0, i64::MAX, 50], |row| row.get::<_, String>(3)).expect("asked");
    let plan: Vec<_> = lines.map(|line| line.expect("read")).collect();
    assert!(plan.iter().all(|line| !line.contains("TEMP B-TREE") && !line.contains("SCAN")), "{plan:?}");
}

/// Creates a registry of `count` devices, all in one topic and owned by one user, of which only the last is listed.
fn sparse(count: i64) -> Connection {
    let connection = Connection::open_in_memory().expect("opened");
    migrations::run(&connection, migrations::STORE).expect("made");
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
    let devices = format!(
        "{rows} INSERT INTO devices (key, token_since, registered_at, platform, listed, token)
         SELECT 1 << 40 | i, 0, 0, 1, i = ?1, 't' || i FROM n"
    );
    let subscribed = format!("{rows} INSERT INTO subscriptions (topic, key) SELECT 1, 1 << 40 | i FROM n");
    let owned = format!("{rows} INSERT INTO user_devices (owner, key) SELECT 1, 1 << 40 | i FROM n");
    for sql in [devices, subscribed, owned] {
        connection.execute(&sql, [count]).expect("written");
    }
    let named = "INSERT INTO topics (no, app, name, device_count) VALUES (1, 1, 'news', 0);
        INSERT INTO users (no, app, external_id, created_at) VALUES (1, 1, 'ada', 0);";
    connection.execute_batch(named).expect("written");
    connection
}

#[test]
fn who_is_few_among_many_is_found_in_looks_of_a_bounded_number_of_rows() {
    let count = 2 * WALKED_MAX_COUNT as u64 + 10;
    let connection = sparse(count.cast_signed());
    let targets = [
        Target::Everyone,
        Target::Topic(stentor_core::name::TopicName::new("news").expect("a topic")),
        Target::User(stentor_core::name::ExternalId::new("ada").expect("a person")),
        Target::Condition(stentor_core::topic::Condition::parse("'news' in topics").expect("a condition")),
    ];
    for target in targets {
        let (mut found, mut next, mut looks) = (AudiencePart::default(), Some(DeviceId::from_raw(0)), 0);
        while let Some(after) = next {
            let stretch = stretch(after.raw(), 5);
            next = wide(&connection, &target, stretch, &mut found).expect("read");
            looks += 1;
        }
        assert_eq!(found.devices, [DeviceId::from_raw(count)], "{target:?}");
        assert!((3..=5).contains(&looks), "{looks} looks for {target:?}");
    }
}
