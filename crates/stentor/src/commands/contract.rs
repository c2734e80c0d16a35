//! The contract: its operations, the faces that carry them, and their descriptions.

#[cfg(test)]
mod tests;

use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::{Value, json};
use stentor_server::contract::Facts;
use stentor_server::contract::streams::{STREAMS, StreamFacts};
use stentor_server::contract::table::OPERATIONS;
use stentor_server::face::{DESCRIPTIONS, FACES, Face};

use crate::output::{Output, line, table};

/// List the operations of the server and the faces that carry them, or print a description
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  stentor contract\n  stentor contract openapi > openapi.json")]
pub(crate) struct Contract {
    /// The description to print; without one, the operations are listed
    #[arg(value_parser = PossibleValuesParser::new(DESCRIPTIONS.iter().map(|one| PossibleValue::new(one.name).help(one.about))))]
    description: Option<String>,
}

impl Contract {
    /// Prints it; fails when a face lacks an operation.
    pub(crate) fn run(&self, output: Output) -> anyhow::Result<()> {
        let named = |name: &String| DESCRIPTIONS.iter().find(|one| one.name == name);
        if let Some(description) = self.description.as_ref().and_then(named) {
            return line((description.write)().trim_end());
        }
        list(FACES, output)
    }
}

/// Prints the operations with the faces that carry them. Fails if one of the given faces lacks an operation.
fn list(faces: &[Face], output: Output) -> anyhow::Result<()> {
    let missing: Vec<_> = OPERATIONS.iter().flat_map(|facts| missing(faces, facts)).collect();
    let operations: Vec<Value> = OPERATIONS.iter().map(|facts| operation(faces, facts)).collect();
    let streams: Vec<Value> = STREAMS.iter().map(|facts| stream(faces, facts)).collect();
    output.result(&json!({"operations": operations, "streams": streams, "missing": missing}), || {
        let streams = STREAMS.iter().map(|facts| stream_row(faces, facts));
        let rows = OPERATIONS.iter().map(|facts| row(faces, facts)).chain(streams);
        table(["operation", "faces", "repeatable"], rows)
    })?;
    if !missing.is_empty() {
        bail!("a face lacks an operation: {}", missing.join(", "));
    }
    Ok(())
}

fn faces_of(faces: &[Face], name: &str) -> Vec<&'static str> {
    faces.iter().filter(|face| (face.carries)(name)).map(|face| face.name).collect()
}

/// Lists the faces that lack an operation, each with its name.
fn missing(faces: &[Face], facts: &Facts) -> Vec<String> {
    let lacks = faces.iter().filter(|face| !(face.carries)(facts.name));
    lacks.map(|face| format!("{} in {}", facts.name, face.name)).collect()
}

fn operation(faces: &[Face], facts: &Facts) -> Value {
    let errors: Vec<_> = facts.errors.iter().map(|code| code.as_str()).collect();
    json!({
        "operation": facts.name,
        "about": facts.sentences(),
        "repeatable": facts.repeatable,
        "errors": errors,
        "faces": faces_of(faces, facts.name),
    })
}

/// Describes an operation as a stream; a face with a format that has no streams need not carry it.
fn stream(faces: &[Face], facts: &StreamFacts) -> Value {
    json!({
        "stream": facts.name,
        "about": facts.about,
        "operation": facts.operation,
        "faces": faces_of(faces, facts.name),
    })
}

fn stream_row(faces: &[Face], facts: &StreamFacts) -> [String; 3] {
    [facts.name.to_owned(), faces_of(faces, facts.name).join(" "), String::new()]
}

fn row(faces: &[Face], facts: &Facts) -> [String; 3] {
    let repeatable = if facts.repeatable { "yes" } else { "" };
    [facts.name.to_owned(), faces_of(faces, facts.name).join(" "), repeatable.to_owned()]
}
