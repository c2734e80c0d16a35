//! Checks the PostgreSQL database of a server: reachable, with the current schema, durable, and with spare connections.

use super::{FindingHealth, ServerFinding};
use crate::output::thousands;
use stentor_node::{PostgresInspection, StorePlace, inspect_database};

/// Connections that a server opens: three for writes, six for reads, one for notifications; with the queue in PostgreSQL three for queries
/// and one for notifications; and two for a check like this.
const NEEDED_CONNECTIONS: u64 = 16;
/// Sequential queries before a message is accepted, and from then until its first delivery begins.
const TURNS_TO_ACCEPT: u64 = 6;
const TURNS_TO_SEND: u64 = 25;
/// Round-trip time that callers notice, and the one from which the throughput is low.
const FAR_US: u64 = 10_000;
const TOO_FAR_US: u64 = 100_000;
/// PostgreSQL's default, which is for small machines (postgresql.org/docs, runtime-config-resource).
const SMALL_BUFFERS_BYTES: u64 = 128 << 20;
/// Size of a store that is repeatedly read from the disk with this little memory.
const LARGE_STORE_BYTES: u64 = 1 << 30;

/// Checks the database.
pub(super) async fn look(place: StorePlace) -> Vec<ServerFinding> {
    let StorePlace::Postgres(address) = place else { return Vec::new() };
    let shown = address.shown();
    let looking = tokio::task::spawn_blocking(move || inspect_database(&address));
    match looking
        .await
        .map_err(|error| error.to_string())
        .and_then(|found| found.map_err(|error| error.to_string()))
    {
        Ok(found) => vec![
            judge_schema(&shown, &found),
            judge_link(&found),
            judge_distance(&found),
            judge_durability(&found),
            judge_connections(&found),
            judge_memory(&found),
        ],
        Err(error) => {
            let advice = "start PostgreSQL, or correct store.url, as the message says";
            vec![ServerFinding::bad("database", FindingHealth::Broken, format!("{shown}: {error}"), advice)]
        }
    }
}

fn judge_schema(shown: &str, found: &PostgresInspection) -> ServerFinding {
    let (is, known) = (found.schema_version, found.known_schema_version);
    let size = thousands(found.bytes >> 10);
    let detail = format!("{shown}: PostgreSQL {}, {size} KiB, schema {is} of {known}", found.server_version);
    let bad = |health, advice: &str| ServerFinding::bad("database", health, detail.clone(), advice);
    if found.is_standby {
        return bad(FindingHealth::Broken, "it is a standby, which only reads: name the server that writes");
    }
    if found.is_copy_unfinished {
        return bad(FindingHealth::Broken, "a copy into it was not finished: run `stentor store copy` again");
    }
    if is > known && found.is_schema_usable {
        return bad(
            FindingHealth::Doubtful,
            "servers of a newer version have been here: bring this one to their version soon",
        );
    }
    if is > known {
        return bad(FindingHealth::Broken, "use the version of Stentor that wrote it, or a newer one");
    }
    if is < known {
        return bad(
            FindingHealth::Doubtful,
            "the next start of a server brings it to this version's schema: back it up before",
        );
    }
    ServerFinding::good("database", detail)
}

fn judge_link(found: &PostgresInspection) -> ServerFinding {
    match (found.is_over_tcp, found.is_encrypted) {
        (false, _) => ServerFinding::good("database link", "a socket of this machine"),
        (true, true) => ServerFinding::good("database link", "TLS"),
        (true, false) => {
            let advice =
                "set sslmode=verify-full in store.url, unless the network to the database is yours alone";
            ServerFinding::bad("database link", FindingHealth::Doubtful, "TCP without TLS", advice)
        }
    }
}

fn judge_distance(found: &PostgresInspection) -> ServerFinding {
    let ms = |us: u64| format!("{}.{:01} ms", us / 1_000, us % 1_000 / 100);
    let (turn, accept, send) =
        (found.round_trip_us, found.round_trip_us * TURNS_TO_ACCEPT, found.round_trip_us * TURNS_TO_SEND);
    let detail = format!(
        "round trip {}: about {} until a message is accepted, {} more until it is sent",
        ms(turn),
        ms(accept),
        ms(send)
    );
    if found.is_session_shared {
        let advice = "name PostgreSQL itself, or set pool_mode = session: no server starts behind a pooler that shares sessions";
        return ServerFinding::bad("database distance", FindingHealth::Broken, detail, advice);
    }
    let advice = "run the servers where the database is: each transaction waits for it several times";
    match turn {
        ..FAR_US => ServerFinding::good("database distance", detail),
        FAR_US..TOO_FAR_US => {
            ServerFinding::bad("database distance", FindingHealth::Doubtful, detail, advice)
        }
        _ => ServerFinding::bad("database distance", FindingHealth::Broken, detail, advice),
    }
}

fn judge_durability(found: &PostgresInspection) -> ServerFinding {
    let word = |is: bool| if is { "on" } else { "off" };
    let detail = format!(
        "fsync {}, full_page_writes {}, autovacuum {}, synchronous_commit {} (Stentor sets on in its sessions)",
        word(found.fsync),
        word(found.full_page_writes),
        word(found.autovacuum),
        found.synchronous_commit
    );
    if !found.fsync || !found.full_page_writes {
        let advice = "turn fsync and full_page_writes on: without them a power cut can lose or damage messages that were answered with 202";
        return ServerFinding::bad("database durability", FindingHealth::Broken, detail, advice);
    }
    if !found.autovacuum {
        let advice = "turn autovacuum on: without it deleted rows take space for ever";
        return ServerFinding::bad("database durability", FindingHealth::Doubtful, detail, advice);
    }
    ServerFinding::good("database durability", detail)
}

fn judge_connections(found: &PostgresInspection) -> ServerFinding {
    let (used, most) = (found.connections_count, found.connections_max_count);
    let detail = format!("{used} of {most} in use");
    if most.saturating_sub(used) < NEEDED_CONNECTIONS {
        let advice = format!("raise max_connections: a server opens {NEEDED_CONNECTIONS}");
        return ServerFinding::bad("database connections", FindingHealth::Doubtful, detail, advice);
    }
    ServerFinding::good("database connections", detail)
}

fn judge_memory(found: &PostgresInspection) -> ServerFinding {
    let detail = format!("shared_buffers {} MiB", thousands(found.shared_buffers_bytes >> 20));
    if found.shared_buffers_bytes <= SMALL_BUFFERS_BYTES && found.bytes > LARGE_STORE_BYTES {
        let advice = "raise shared_buffers to a quarter of the machine's memory";
        return ServerFinding::bad("database memory", FindingHealth::Doubtful, detail, advice);
    }
    ServerFinding::good("database memory", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> PostgresInspection {
        PostgresInspection {
            server_version: "17.1".to_owned(),
            is_standby: false,
            is_encrypted: true,
            is_over_tcp: true,
            schema_version: 3,
            known_schema_version: 3,
            is_schema_usable: true,
            is_copy_unfinished: false,
            bytes: 1 << 20,
            fsync: true,
            full_page_writes: true,
            synchronous_commit: "off".to_owned(),
            autovacuum: true,
            shared_buffers_bytes: SMALL_BUFFERS_BYTES,
            connections_max_count: 97,
            connections_count: 9,
            round_trip_us: 400,
            is_session_shared: false,
        }
    }

    #[test]
    fn a_database_in_order_is_good_and_each_fault_is_named() {
        type Change = fn(&mut PostgresInspection);
        let healths = |found: &PostgresInspection| {
            [
                judge_schema("db", found),
                judge_link(found),
                judge_durability(found),
                judge_connections(found),
                judge_memory(found),
                judge_distance(found),
            ]
            .map(|finding| finding.health)
        };
        assert_eq!(healths(&found()), [FindingHealth::Good; 6]);
        let faults: [(usize, FindingHealth, Change); 12] = [
            (0, FindingHealth::Broken, |found| found.is_standby = true),
            (0, FindingHealth::Broken, |found| found.is_copy_unfinished = true),
            (0, FindingHealth::Doubtful, |found| found.schema_version = 4),
            (0, FindingHealth::Broken, |found| (found.schema_version, found.is_schema_usable) = (4, false)),
            (0, FindingHealth::Doubtful, |found| found.schema_version = 2),
            (1, FindingHealth::Doubtful, |found| found.is_encrypted = false),
            (2, FindingHealth::Broken, |found| found.fsync = false),
            (3, FindingHealth::Doubtful, |found| found.connections_count = 90),
            (4, FindingHealth::Doubtful, |found| found.bytes = 2 << 30),
            (5, FindingHealth::Doubtful, |found| found.round_trip_us = 40_000),
            (5, FindingHealth::Broken, |found| found.round_trip_us = 160_000),
            (5, FindingHealth::Broken, |found| found.is_session_shared = true),
        ];
        for (at, health, change) in faults {
            let mut broken = found();
            change(&mut broken);
            let mut expected = [FindingHealth::Good; 6];
            expected[at] = health;
            assert_eq!(healths(&broken), expected, "{broken:?}");
        }
    }
}
