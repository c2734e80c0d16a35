//! The sources of the generated documents under `docs/`: `openapi`, `errors`.

use crate::output::{Output, line, table};
use clap::Args;
use serde_json::{Value, json};
use stentor_server::face::rest as api;

/// Print the server's OpenAPI description
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  stentor openapi > openapi.json")]
pub(crate) struct OpenapiArgs {}

/// List the codes of the API's errors
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  stentor errors\n  stentor errors --markdown > docs/errors.md")]
pub(crate) struct ErrorsArgs {
    /// Print a Markdown page
    #[arg(long)]
    markdown: bool,
}

impl OpenapiArgs {
    /// Prints it.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        line(api::openapi_json().trim_end())
    }
}

impl ErrorsArgs {
    /// Prints them.
    pub(crate) fn run(&self, output: Output) -> anyhow::Result<()> {
        if self.markdown {
            return line(api::errors_markdown().trim_end());
        }
        let codes = api::error_codes();
        let list: Vec<Value> = codes
            .iter()
            .map(|one| json!({"code": one.code, "status": one.status, "title": one.title, "advice": one.advice}))
            .collect();
        output.result(&json!({ "errors": list }), || {
            let row = |one: &api::ErrorCodeEntry| {
                [one.code.to_owned(), one.status.to_string(), one.title.to_owned(), one.advice.to_owned()]
            };
            table(["code", "status", "meaning", "what to do"], codes.iter().map(row))
        })
    }
}
