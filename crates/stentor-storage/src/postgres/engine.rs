//! What statements are done with, under the names that each file here calls them by.

pub(super) use super::connection::PostgresConnection as Connection;
pub(super) use super::row::PostgresRow as Row;
pub(super) use super::value::{Params, PostgresValue as Value, params};
