use stentor_core::group::Member;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::{ExternalId, GroupName};
use stentor_core::ports::store::MemberAction;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::*;
use crate::sql::store::members;
use crate::sql::store::removal;
use crate::sqlite::migrations;
use crate::sqlite::store::app_providers::AppProvider;
use crate::sqlite::store::audience::{self, AudiencePart};
use crate::sqlite::store::stretch::Stretch;

const APP: AppId = AppId::from_raw(1);
const ADD: MemberAction = MemberAction::Add { max_count: None, now: Timestamp::from_millis(0) };
/// More than a few portions' worth.
const DEVICES: i64 = 6_000;
/// The rows that one statement, with its triggers, may add to a portion that was not over yet.
const SLACK_ROWS: u64 = 2 * AT_ONCE_MAX_COUNT as u64 + 16;

/// Creates an app with all devices in one topic and owned by one user, and half of them direct members of one group.
fn registry() -> Connection {
    let connection = Connection::open_in_memory().expect("opened");
    migrations::run(&connection, migrations::STORE).expect("made");
    let named = "INSERT INTO apps (id, name, created_at) VALUES (1, 'app', 0);
        INSERT INTO fleets (no, app, provider, active_count) VALUES (1, 1, 1, 0);
        INSERT INTO topics (no, app, name, device_count) VALUES (1, 1, 'news', 0);
        INSERT INTO users (no, app, external_id, created_at) VALUES (1, 1, 'ada', 0);
        INSERT INTO groups (no, app, name, created_at, member_count) VALUES (1, 1, 'crew', 0, 0);";
    connection.execute_batch(named).expect("written");
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
    let lists = [
        "devices (key, token_since, registered_at, platform, listed, owner, token)
            SELECT 1 << 40 | i, 0, 0, 1, 1, 1, 't' || i FROM n",
        "subscriptions (topic, key) SELECT 1, 1 << 40 | i FROM n",
        "user_devices (owner, key) SELECT 1, 1 << 40 | i FROM n",
        "device_tags (app, tag, key) SELECT 1, 'beta', 1 << 40 | i FROM n",
        "group_devices (grp, device, key) SELECT 1, i, 1 << 40 | i FROM n WHERE i % 2 = 0",
    ];
    for list in lists {
        connection.execute(&format!("{rows} INSERT INTO {list}"), [DEVICES]).expect("written");
    }
    connection
}

fn count(connection: &Connection, table: &str) -> i64 {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("counted")
}

/// Executes work in a transaction of its own; it must change no more rows than a portion.
fn once<T>(connection: &Connection, work: impl FnOnce() -> Done<T>) -> T {
    let before = connection.total_changes();
    let transaction = connection.unchecked_transaction().expect("begun");
    let done = work().expect("done");
    transaction.commit().expect("committed");
    let changed = connection.total_changes() - before;
    assert!(changed <= crate::sql::PORTION_MAX_ROWS + SLACK_ROWS, "{changed} rows in one transaction");
    done
}

/// Works off all leftovers; returns the number of transactions.
fn finish(connection: &Connection) -> usize {
    let mut steps = 1;
    while once(connection, || go_on(connection, &Portion::begin(connection))) {
        steps += 1;
        assert!(steps < 10_000, "it does not end");
    }
    steps
}

/// Counts the devices that the group reaches.
fn reached(connection: &Connection) -> usize {
    let fleet = AppProvider { no: 1, app: APP, provider: stentor_core::device::ProviderKind::Fcm };
    let (after, as_of) = (DeviceId::from_raw(0), DeviceId::from_raw(u64::MAX));
    let stretch = Stretch { fleet, after, as_of, max: usize::MAX };
    let target = Target::Group(GroupName::new("crew").expect("a group"));
    let mut found = AudiencePart::default();
    audience::wide(connection, &target, stretch, &mut found).expect("read");
    found.devices.len()
}

fn ada() -> Member {
    Member::User(ExternalId::new("ada").expect("a person"))
}

fn join(connection: &Connection) {
    once(connection, || members::change_all(connection, APP, 1, &[ada()], ADD));
}

#[test]
fn a_large_topic_goes_in_portions() {
    let connection = registry();
    connection.execute("DELETE FROM topics", []).expect("gone");
    once(&connection, || {
        Leftover::of(LeftoverKind::Removed(RemovedKind::Topic), 1)
            .begin(&connection, &Portion::begin(&connection))
    });
    assert!(count(&connection, "subscriptions") > 0, "too much for one transaction");
    assert!(finish(&connection) > 0);
    let left = ["subscriptions", "leftovers"].map(|table| count(&connection, table));
    assert_eq!(left, [0; 2]);
}

#[test]
fn a_person_with_many_devices_joins_and_leaves_a_group_in_portions() {
    let connection = registry();
    join(&connection);
    let begun = count(&connection, "group_user_devices");
    assert!(begun < DEVICES, "{begun} at once");
    while once(&connection, || follow_group(&connection, 1)) {}
    assert_eq!(count(&connection, "group_user_devices"), DEVICES);
    assert_eq!(reached(&connection), DEVICES as usize);
    once(&connection, || members::change_all(&connection, APP, 1, &[ada()], MemberAction::Remove));
    assert!(count(&connection, "group_user_devices") > 0, "too much for one transaction");
    assert_eq!(reached(&connection), DEVICES as usize / 2, "those that are in it by themselves");
    connection.execute("DELETE FROM user_devices WHERE key = 1 << 40 | ?1", [DEVICES]).expect("left her");
    finish(&connection);
    assert_eq!((count(&connection, "group_user_devices"), count(&connection, "leftovers")), (0, 0));
}

#[test]
fn a_person_who_returns_to_a_group_before_all_devices_left_it_is_in_it_with_all() {
    let connection = registry();
    join(&connection);
    finish(&connection);
    once(&connection, || members::change_all(&connection, APP, 1, &[ada()], MemberAction::Remove));
    join(&connection);
    finish(&connection);
    assert_eq!(count(&connection, "group_user_devices"), DEVICES);
}

#[test]
fn a_person_with_many_devices_is_gone_from_groups_at_once_and_from_the_devices_in_portions() {
    let connection = registry();
    join(&connection);
    finish(&connection);
    once(&connection, || {
        members::remove_user(&connection, 1)?;
        run(&connection, "DELETE FROM users WHERE no = 1", ())?;
        Leftover::of(LeftoverKind::Removed(RemovedKind::Person), 1)
            .begin(&connection, &Portion::begin(&connection))
    });
    assert!(count(&connection, "user_devices") > 0, "too much for one transaction");
    assert_eq!(reached(&connection), DEVICES as usize / 2);
    assert!(finish(&connection) > 1);
    let left =
        ["user_devices", "group_user_devices", "group_users", "leftovers", "devices WHERE owner IS NOT NULL"];
    assert_eq!(left.map(|table| count(&connection, table)), [0; 5]);
}

#[test]
fn a_large_group_goes_in_portions() {
    let connection = registry();
    join(&connection);
    connection.execute("DELETE FROM groups", []).expect("gone");
    once(&connection, || {
        Leftover::of(LeftoverKind::Removed(RemovedKind::Group), 1)
            .begin(&connection, &Portion::begin(&connection))
    });
    finish(&connection);
    let left = ["group_users", "group_devices", "group_user_devices", "leftovers"];
    assert_eq!(left.map(|table| count(&connection, table)), [0; 4]);
    assert_eq!(count(&connection, "user_devices"), DEVICES, "its people stay as they are");
}

#[test]
fn a_large_app_goes_in_portions_and_leaves_nothing() {
    let connection = registry();
    join(&connection);
    let schedules = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO occurrences (schedule, instant) SELECT 1, i FROM n";
    connection.execute(schedules, []).expect("written");
    let one = "INSERT INTO schedules (id, app, state, created_at, next_due, recurrence, spec) VALUES (1, 1, 0, 0, 1, '', '')";
    connection.execute(one, []).expect("written");
    once(&connection, || removal::app(&connection, APP));
    assert_eq!((count(&connection, "apps"), count(&connection, "fleets")), (0, 0), "gone for everybody");
    assert!(finish(&connection) > 5);
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'
        AND name NOT IN ('sequences', 'scrubs', 'token_leaves_fresh_count')";
    let mut statement = connection.prepare(tables).expect("prepared");
    let tables = statement.query_map([], |row| row.get::<_, String>(0)).expect("asked");
    for table in tables.map(|table| table.expect("a name")) {
        assert_eq!(count(&connection, &table), 0, "{table}");
    }
}
