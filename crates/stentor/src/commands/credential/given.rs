//! The fields of a credential as options, taken from each adapter's schema.

use super::provider;
use crate::failure::CommandFailure;
use anyhow::Context;
use clap::builder::{
    BoolValueParser, PathBufValueParser, PossibleValuesParser, StringValueParser, TypedValueParser,
    ValueParser,
};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stentor_providers::Descriptor;
use stentor_providers::schema::{CredentialField, CredentialFieldKind, Flag, Input};

/// The fields of a credential.
#[derive(Debug)]
pub(in crate::commands) struct CredentialSet {
    adapter: &'static Descriptor,
    file: Option<PathBuf>,
    options: BTreeMap<&'static str, Value>,
}

/// An option, and each field that it sets.
struct Choosable {
    flag: Flag,
    fields: Vec<(&'static Descriptor, &'static CredentialField)>,
}

/// Returns one example for each push service that needs more than its name.
pub(super) fn examples() -> String {
    let example = |adapter: &Descriptor| {
        let arguments = adapter.credential.example;
        format!("  stentor app credential set --provider {} {arguments}", adapter.kind)
    };
    let examples: Vec<_> =
        stentor_providers::all().filter(|adapter| !adapter.is_for_trials).map(example).collect();
    format!("Examples:\n{}", examples.join("\n"))
}

impl Args for CredentialSet {
    fn augment_args(command: Command) -> Command {
        let push_service =
            Arg::new("provider").long("provider").value_name("PROVIDER").required(true).ignore_case(true);
        let push_service = push_service.value_parser(provider()).help("The push service");
        let file = Arg::new("file").value_name("FILE").value_parser(value_parser!(PathBuf)).help(file_help());
        command.arg(push_service).arg(file).args(options().iter().map(Choosable::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CredentialSet {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let adapter = matches.get_one::<&'static Descriptor>("provider").copied();
        let adapter =
            adapter.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::MissingRequiredArgument))?;
        let given = |option: &Choosable| {
            Some((option.flag.long, matches.get_one::<Value>(option.flag.long)?.clone()))
        };
        let options = options().iter().filter_map(given).collect();
        Ok(Self { adapter, file: matches.get_one::<PathBuf>("file").cloned(), options })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl CredentialSet {
    /// Returns the name of the push service.
    pub(super) fn provider(&self) -> &'static str {
        self.adapter.kind.as_str()
    }

    /// Builds the credential.
    pub(super) fn body(&self) -> anyhow::Result<Value> {
        let mut body = Map::new();
        for field in self.adapter.credential.fields {
            if let Some(value) = self.value(field)? {
                body.insert(field.name.to_owned(), value);
            }
        }
        Ok(Value::Object(body))
    }

    fn value(&self, field: &CredentialField) -> anyhow::Result<Option<Value>> {
        let option = |flag: Flag| self.options.get(flag.long).cloned();
        let (flag, value) = match field.input {
            Input::Never => return Ok(None),
            Input::File { is, from } => return self.file_value(field, is, from).map(Some),
            Input::Named(flag) => (flag, option(flag)),
            Input::NamedOrInFileName(flag, before) => {
                (flag, option(flag).or_else(|| self.in_file_name(before)))
            }
            Input::NamedFile(flag) => {
                let path = option(flag);
                let path = path.as_ref().and_then(Value::as_str).map(Path::new);
                (flag, path.map(read).transpose()?.map(Value::from))
            }
        };
        if field.is_required && value.is_none() {
            return Err(CommandFailure::usage(format!(
                "--{} is needed for {}",
                flag.long, self.adapter.label
            ))
            .into());
        }
        Ok(value)
    }

    fn file_value(&self, field: &CredentialField, is: &str, from: &str) -> anyhow::Result<Value> {
        let path = self.file.as_deref().ok_or_else(|| CommandFailure::usage("name the credential's file"))?;
        let text = read(path)?;
        if !matches!(field.kind, CredentialFieldKind::Object(_)) {
            return Ok(text.into());
        }
        serde_json::from_str(&text).map_err(|error| {
            let path = path.display();
            CommandFailure::usage(format!("{path} is not {is}: {error}; download it again from {from}"))
                .into()
        })
    }

    fn in_file_name(&self, before: &str) -> Option<Value> {
        let stem = self.file.as_deref()?.file_stem()?.to_str()?;
        stem.strip_prefix(before).map(Value::from)
    }
}

/// Lists the options of all adapters, each once.
fn options() -> Vec<Choosable> {
    let mut options: Vec<Choosable> = Vec::new();
    for adapter in stentor_providers::all() {
        for field in adapter.credential.fields {
            let (Input::Named(flag) | Input::NamedOrInFileName(flag, _) | Input::NamedFile(flag)) =
                field.input
            else {
                continue;
            };
            match options.iter_mut().find(|option| option.flag.long == flag.long) {
                Some(option) => option.fields.push((adapter, field)),
                None => options.push(Choosable { flag, fields: vec![(adapter, field)] }),
            }
        }
    }
    options
}

impl Choosable {
    fn argument(&self) -> Arg {
        let field = self.fields[0].1;
        let parser: ValueParser = match (&field.kind, field.input) {
            (_, Input::NamedFile(_)) => PathBufValueParser::new()
                .try_map(|path: PathBuf| path.to_str().map(Value::from).ok_or("must be UTF-8"))
                .into(),
            (CredentialFieldKind::Connections, _) => value_parser!(u32).map(Value::from).into(),
            (CredentialFieldKind::Flag, _) => BoolValueParser::new().map(Value::from).into(),
            (CredentialFieldKind::Quota, _) => ValueParser::new(quota),
            (CredentialFieldKind::Choice(choice), _) => {
                PossibleValuesParser::new(choice.words).map(Value::from).into()
            }
            _ => StringValueParser::new().map(Value::from).into(),
        };
        let Flag { long, value } = self.flag;
        Arg::new(long).long(long).value_name(value).value_parser(parser).help(self.help())
    }

    /// Returns the help text: the description, the push services if not all take it, and the default.
    fn help(&self) -> String {
        let (_, field) = self.fields[0];
        let takers = stentor_providers::all().filter(|adapter| !adapter.is_for_trials).count();
        let of = |(adapter, field): &(&Descriptor, &CredentialField)| match field.when_absent {
            Some(usual) => format!("{}: {usual} when not given", adapter.label),
            None => adapter.label.to_owned(),
        };
        let is_general = self.fields.len() == takers && field.when_absent.is_none();
        let whose: Vec<_> = self.fields.iter().filter(|_| !is_general).map(of).collect();
        let mut help = field.about.to_owned();
        if let Input::NamedOrInFileName(_, before) = field.input {
            help += &format!("; read from a file's name that begins with {before} when not given");
        }
        if whose.is_empty() { help } else { format!("{help} ({})", whose.join(", ")) }
    }
}

fn file_help() -> String {
    let file = |adapter: &'static Descriptor| {
        let is_file = |field: &&CredentialField| matches!(field.input, Input::File { .. });
        let field = adapter.credential.fields.iter().find(is_file)?;
        Some(format!("{} ({})", field.about, adapter.label))
    };
    stentor_providers::all().filter_map(file).collect::<Vec<_>>().join(", or: ")
}

fn quota(text: &str) -> Result<Value, String> {
    if text == "none" {
        return Ok(text.into());
    }
    text.parse::<u32>()
        .map(Value::from)
        .map_err(|_| "must be a number of messages per minute, or none".to_owned())
}

fn read(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    // Some editors put a byte order mark before the text.
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

#[cfg(test)]
mod tests;
