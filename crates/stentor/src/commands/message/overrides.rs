//! Overrides for single push services: an option for each adapter that accepts one.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;
use std::collections::BTreeMap;

/// The given overrides, by the field of the request.
#[derive(Debug)]
pub(super) struct OverrideArgs(pub(super) BTreeMap<&'static str, Value>);

impl Args for OverrideArgs {
    fn augment_args(command: Command) -> Command {
        let overrides = stentor_providers::all().filter_map(|adapter| adapter.overrides.as_ref());
        command.args(overrides.map(|one| {
            let json = |text: &str| serde_json::from_str::<Value>(text);
            Arg::new(one.field).long(one.field).value_name("JSON").value_parser(json).help(one.help)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OverrideArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let fields = stentor_providers::all().filter_map(|adapter| adapter.override_field());
        let given = |field| Some((field, matches.get_one::<Value>(field)?.clone()));
        Ok(Self(fields.filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
