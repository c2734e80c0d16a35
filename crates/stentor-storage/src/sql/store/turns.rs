//! Due work: the earliest first if all of it can be done, otherwise every app in its turn.

use std::sync::LazyLock;

use stentor_core::time::Timestamp;

use super::codes::{ACTIVE, SCHEDULED};
use crate::sql::{Connection, Done, all, limit};
use crate::turns::{in_turns, share};

/// The queries for one kind of due work.
struct DueQueries {
    /// The earliest of all apps: by (now, count).
    earliest: String,
    /// Apps with due work, ordered by their earliest: by (now, count).
    apps: String,
    /// The earliest of one app: by (app, now, count).
    of_app: String,
}

static SCHEDULES: LazyLock<DueQueries> = LazyLock::new(|| {
    DueQueries {
    earliest: format!(
        "SELECT id FROM schedules WHERE state = {ACTIVE} AND next_due <= ?1 AND app IN (SELECT id FROM apps)
        ORDER BY next_due, id LIMIT ?2"
    ),
    apps: format!(
        "WITH RECURSIVE owners (app) AS (SELECT min(app) FROM schedules UNION ALL
            SELECT (SELECT min(s.app) FROM schedules s WHERE s.app > owners.app) FROM owners WHERE owners.app IS NOT NULL),
        heads AS (SELECT app, (SELECT min(s.next_due) FROM schedules s
            WHERE s.app = owners.app AND s.state = {ACTIVE} AND s.next_due <= ?1) AS head FROM owners)
        SELECT app FROM heads WHERE head IS NOT NULL AND app IN (SELECT id FROM apps) ORDER BY head, app LIMIT ?2"
    ),
    of_app: format!(
        "SELECT id FROM schedules WHERE app = ?1 AND state = {ACTIVE} AND next_due <= ?2 ORDER BY next_due, id LIMIT ?3"
    ),
}
});

static CAMPAIGNS: LazyLock<DueQueries> = LazyLock::new(|| {
    DueQueries {
    earliest: format!(
        "SELECT id FROM campaigns WHERE state = {SCHEDULED} AND due_at <= ?1 AND app IN (SELECT id FROM apps)
        ORDER BY due_at, id LIMIT ?2"
    ),
    apps: format!(
        "WITH RECURSIVE owners (app) AS (
            SELECT min(app) FROM campaigns WHERE state = {SCHEDULED} UNION ALL
            SELECT (SELECT min(c.app) FROM campaigns c
                WHERE c.state = {SCHEDULED} AND c.app > owners.app)
            FROM owners WHERE owners.app IS NOT NULL),
        heads AS (SELECT app, (SELECT min(c.due_at) FROM campaigns c WHERE c.app = owners.app
            AND c.state = {SCHEDULED} AND c.due_at <= ?1) AS head FROM owners)
        SELECT app FROM heads WHERE head IS NOT NULL AND app IN (SELECT id FROM apps) ORDER BY head, app LIMIT ?2"
    ),
    of_app: format!(
        "SELECT id FROM campaigns WHERE app = ?1 AND state = {SCHEDULED} AND due_at <= ?2
        ORDER BY due_at, id LIMIT ?3"
    ),
}
});

/// Lists schedules that are due.
pub(crate) fn due_schedules(connection: &Connection, now: Timestamp, count: usize) -> Done<Vec<i64>> {
    let earliest = earliest(connection, &SCHEDULES, now, count)?;
    // A result below the limit is everything due, and needs no turns.
    if earliest.len() < count { Ok(earliest) } else { turns(connection, &SCHEDULES, now, count) }
}

/// Lists campaigns that are to begin.
pub(crate) fn due_campaigns(connection: &Connection, now: Timestamp, count: usize) -> Done<Vec<i64>> {
    let earliest = earliest(connection, &CAMPAIGNS, now, count)?;
    if earliest.len() < count { Ok(earliest) } else { turns(connection, &CAMPAIGNS, now, count) }
}

fn earliest(connection: &Connection, kind: &DueQueries, now: Timestamp, count: usize) -> Done<Vec<i64>> {
    all(connection, &kind.earliest, [now.as_millis(), limit(count)], |row| row.get(0))
}

fn turns(connection: &Connection, kind: &DueQueries, now: Timestamp, count: usize) -> Done<Vec<i64>> {
    let apps: Vec<i64> = all(connection, &kind.apps, [now.as_millis(), limit(count)], |row| row.get(0))?;
    let share = share(count, apps.len());
    let of_app = |app: i64, most: usize| {
        all(connection, &kind.of_app, [app, now.as_millis(), limit(most)], |row| row.get(0))
    };
    let mut lists: Vec<Vec<i64>> = apps.iter().map(|app| of_app(*app, share)).collect::<Done<_>>()?;
    // Apps with much due work take the share that others leave unused.
    if lists.iter().map(Vec::len).sum::<usize>() < count {
        for (list, app) in lists.iter_mut().zip(apps).filter(|(list, _)| list.len() == share) {
            *list = of_app(app, count)?;
        }
    }
    Ok(in_turns(lists, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations;
    use rusqlite::Connection;

    #[test]
    fn a_turn_looks_at_no_more_than_the_heads_of_apps() {
        let connection = Connection::open_in_memory().expect("opened");
        migrations::run(&connection, migrations::STORE).expect("made");
        for sql in [&SCHEDULES.apps, &SCHEDULES.of_app, &CAMPAIGNS.apps, &CAMPAIGNS.of_app] {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
            let values = vec![1_i64; plan.parameter_count()];
            let steps = plan.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3));
            let steps: Vec<_> = steps.expect("asked").map(|step| step.expect("a step")).collect();
            let walks = |step: &String| step.starts_with("SCAN c") || step.starts_with("SCAN s");
            assert!(!steps.iter().any(walks), "{sql}: {steps:#?}");
        }
    }
}
