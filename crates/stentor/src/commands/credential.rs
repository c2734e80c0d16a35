//! `stentor app credential`: the keys to the push services, asked for as their adapters describe them.

mod given;

use self::given::CredentialSet;
use crate::client::{ApiClient, segment};
use crate::output::{Output, cell, table};
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use stentor_providers::Descriptor;

#[derive(Debug, Subcommand)]
pub(super) enum CredentialCommand {
    /// Set the credential for one push service
    #[command(after_help = given::examples())]
    Set(Box<CredentialSet>),
    /// List the credentials, without their secrets
    #[command(after_help = "Example:\n  stentor app credential list")]
    List,
    /// Delete the credential for one push service
    #[command(after_help = "Example:\n  stentor app credential delete --provider fcm")]
    Delete {
        /// The push service
        #[arg(long, ignore_case = true, value_parser = provider())]
        provider: &'static Descriptor,
    },
}

impl CredentialCommand {
    pub(super) async fn run(self, client: &ApiClient, app: &str, output: Output) -> anyhow::Result<()> {
        let path = format!("/v1/apps/{}/credentials", segment(app));
        match self {
            Self::Set(set) => {
                let provider = set.provider();
                client.put(&format!("{path}/{provider}"), &set.body()?).await?;
                output.result(&json!({"app": app, "provider": provider}), || {
                    format!("{provider} is set for {app}; `stentor doctor` says whether it works")
                })
            }
            Self::List => {
                let list = client.get(&path).await?;
                output.result(&list, || describe(&list["credentials"]))
            }
            Self::Delete { provider } => {
                let provider = provider.kind.as_str();
                client.delete(&format!("{path}/{provider}")).await?;
                output.result(&json!({"deleted": provider}), || format!("deleted {provider}"))
            }
        }
    }
}

/// Reads the name of a push service.
fn provider() -> impl TypedValueParser<Value = &'static Descriptor> {
    let names = stentor_providers::all()
        .map(|adapter| PossibleValue::new(adapter.kind.as_str()).help(capitalized(adapter.title)));
    PossibleValuesParser::new(names).try_map(|name| {
        let named = |adapter: &&Descriptor| adapter.kind.as_str().eq_ignore_ascii_case(&name);
        stentor_providers::all().find(named).ok_or("no such push service")
    })
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn describe(credentials: &Value) -> String {
    let rows = credentials.as_array().into_iter().flatten().map(|credential| {
        let summary = credential["summary"].as_object();
        let summary = summary.into_iter().flatten().filter(|(_, value)| !value.is_null());
        let summary: Vec<String> = summary.map(|(name, value)| format!("{name} {}", cell(value))).collect();
        let state = [cell(&credential["state"]), cell(&credential["detail"])].join(" ");
        [
            cell(&credential["provider"]),
            state.trim().to_owned(),
            summary.join(", "),
            cell(&credential["updated_at"]),
        ]
    });
    table(["provider", "state", "summary", "updated_at"], rows)
}
