//! The connection under the name that each file here calls it by.

pub(super) use super::connection::PostgresConnection as Connection;
