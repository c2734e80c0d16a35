//! The configuration, with the checks of addresses and keys that only engines can make.

use std::path::Path;

use secrecy::ExposeSecret;
use stentor_core::ports::store::StoreError;
use stentor_server::config::{
    Config, ConfigError, FormatChecks, StoreConfig, environment, load_with as load_checked,
};
use stentor_storage::postgres::PostgresAddress;
use stentor_storage::seal::SealKeys;

use crate::nats;

/// The formats of this build's engines.
const FORMATS: FormatChecks = FormatChecks {
    store_url: |text| checked::<PostgresAddress, _>(text),
    queue_url: nats::check,
    seal_keys: |text| checked::<SealKeys, _>(text),
};

/// Reads the configuration: defaults, then the file if one is given, then the process' environment.
pub fn load(path: Option<&Path>) -> Result<Config, ConfigError> {
    load_with(path, environment())
}

/// Reads the configuration with the given variables instead of the process' environment.
pub fn load_with(
    path: Option<&Path>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    load_checked(path, variables, &FORMATS)
}

/// Returns the address of the PostgreSQL database. An error does not repeat it.
pub(crate) fn store_address(config: &StoreConfig) -> Result<PostgresAddress, StoreError> {
    config.url.expose_secret().parse()
}

fn checked<T, E>(text: &str) -> Result<(), String>
where
    T: std::str::FromStr<Err = E>,
    E: std::fmt::Display,
{
    text.parse::<T>().map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
