//! Engines, judged by the suites of the ports.

#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "nats")]
mod nats_cluster;
#[cfg(feature = "nats")]
mod nats_queue;
#[cfg(feature = "nats")]
mod nats_server;
#[cfg(feature = "nats")]
mod nats_tls;
mod postgres;
mod postgres_distance;
mod postgres_meanings;
mod postgres_node_reports;
mod postgres_nodes;
mod postgres_origin;
mod postgres_pooler;
mod postgres_queue;
mod postgres_server;
mod postgres_standby;
mod postgres_tls;
mod postgres_troubles;
mod postgres_versions;
mod postgres_way;
mod receipt_damage;
mod shared_queue;
mod sqlite;
mod sqlite_files;
mod sqlite_golden;
mod sqlite_portions;
mod sqlite_power;
mod sqlite_queue_damage;
mod sqlite_scratch;
mod sqlite_seal;
mod sqlite_token_damage;
mod sqlite_trouble;
mod transfer;
mod unsynced_vfs;
