//! Repair of counters in a damaged file: invalid ones continue after the largest stored number.

use rusqlite::Connection;

use super::sequences::{DEVICE_MAX, FLEET_MAX};
use crate::sql::{Done, all, exists, force, int, limit, params, run};

/// The largest id that a clock can have produced; ids are milliseconds and some bits.
const ID_MAX: u64 = 1 << 62;

/// Tables with rows numbered by SQLite, each above the largest number ever used.
const NUMBERED: [(&str, &str); 5] =
    [("chunks", "id"), ("users", "no"), ("topics", "no"), ("groups", "no"), ("audit", "id")];
/// The largest number of rows of a table that are renumbered at one start.
const RENUMBERED_MAX_COUNT: usize = 1_024;

/// Renumbers rows whose id exceeds the sequence, so that the sequence can continue.
pub(super) fn mend_numbers(connection: &Connection) -> Done<()> {
    for (table, key) in NUMBERED {
        let sql = format!("SELECT {key} FROM {table} WHERE {key} > ?1 LIMIT ?2");
        let beyond: Vec<i64> =
            all(connection, &sql, [int(ID_MAX), limit(RENUMBERED_MAX_COUNT)], |row| row.get(0))?;
        let largest = format!("coalesce((SELECT max({key}) FROM {table} WHERE {key} <= ?1), 0)");
        for number in beyond {
            tracing::error!(
                table,
                number,
                "a row has a number that was never given out: it gets another one"
            );
            let sql = format!("UPDATE {table} SET {key} = {largest} + 1 WHERE {key} = ?2");
            force(connection, table, &format!("{key} = {number}"), &sql, [int(ID_MAX), number])?;
        }
        // SQLite takes the next number from here: an invalid one would be the last that it assigns.
        let sql = format!(
            "UPDATE sqlite_sequence SET seq = {largest} WHERE name = ?2
            AND NOT (typeof(seq) = 'integer' AND seq BETWEEN 0 AND ?1)"
        );
        run(connection, &sql, params![int(ID_MAX), table])?;
    }
    Ok(())
}

/// Repairs counters that are missing or invalid: each continues after the largest stored number.
pub(super) fn mend(connection: &Connection) -> Done<()> {
    let device = format!(
        "SELECT max(coalesce((SELECT max(key & {DEVICE_MAX}) FROM devices), 0),
        coalesce((SELECT max(as_of) FROM campaigns WHERE as_of <= {DEVICE_MAX}), 0),
        coalesce((SELECT max(last) FROM chunks WHERE last <= {DEVICE_MAX}), 0))"
    );
    let of = |table: &str| format!("coalesce((SELECT max(id) FROM {table} WHERE id <= {ID_MAX}), 0)");
    let id = ["apps", "api_keys", "accounts", "messages", "campaigns", "schedules", "proposals"];
    let id = id.map(of).join(", ");
    let fleet = format!("SELECT coalesce(max(no), 0) FROM fleets WHERE no <= {FLEET_MAX}");
    let counters = [
        ("device", DEVICE_MAX, device),
        ("fleet", FLEET_MAX, fleet),
        ("id", ID_MAX, format!("SELECT max({id})")),
    ];
    for (name, most, largest) in counters {
        let sane = "SELECT 1 FROM sequences WHERE name = ?1 AND typeof(value) = 'integer' AND value BETWEEN 0 AND ?2";
        if exists(connection, sane, params![name, int(most)])? {
            continue;
        }
        tracing::error!(name, "a counter makes no sense: it goes on after the largest number that is kept");
        // Deleted first: a damaged row may not be comparable, so that no update would find it.
        run(connection, "DELETE FROM sequences WHERE name = ?1", [name])?;
        run(connection, &format!("INSERT INTO sequences (name, value) SELECT ?1, ({largest})"), [name])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{number, one};
    use crate::sqlite::migrations;

    #[test]
    fn rows_and_counters_at_the_last_number_leave_room_for_new_rows() {
        for (row, seq) in [(i64::MAX, "1"), (1, "9223372036854775807"), (i64::MAX, "'x'")] {
            let connection = Connection::open_in_memory().expect("opened");
            migrations::run(&connection, migrations::STORE).expect("made");
            let insert = "INSERT INTO topics (app, name, device_count) VALUES (1, ?1, 0)";
            run(&connection, insert, ["old"]).expect("kept");
            run(&connection, "UPDATE topics SET no = ?1", [row]).expect("damaged");
            run(&connection, &format!("UPDATE sqlite_sequence SET seq = {seq}"), ()).expect("damaged");
            mend_numbers(&connection).expect("mended");
            run(&connection, insert, ["new"]).expect("kept");
            let sum = one(&connection, "SELECT sum(no) FROM topics", (), |row| number(row, 0)).expect("read");
            assert_eq!(sum, Some(3), "{row} {seq}");
        }
    }
}
