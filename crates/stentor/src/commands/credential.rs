//! `stentor app credential`: credentials for the push services, with the options that their adapters describe.

mod given;

use self::given::CredentialSet;
use crate::client::{ApiClient, segment};
use crate::failure::{CommandFailure, Exit};
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
    /// Test the credential for one push service without sending: get an access token, connect, check the certificate
    #[command(after_help = "Example:\n  stentor app credential check --provider fcm")]
    Check {
        /// The push service
        #[arg(long, ignore_case = true, value_parser = provider())]
        provider: &'static Descriptor,
    },
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
                let tried = check(client, app, provider).await?;
                let object = json!({
                    "app": app, "provider": provider, "works": tried["works"], "host": tried["host"], "cause": tried["cause"],
                });
                output.result(&object, || format!("{provider} is set for {app}; {}", tried_text(&tried)))
            }
            Self::Check { provider } => {
                let provider = provider.kind.as_str();
                let tried = check(client, app, provider).await?;
                output.result(&tried, || format!("{provider} of {app}: {}", tried_text(&tried)))?;
                match tried["works"].as_bool() {
                    Some(true) => Ok(()),
                    _ => Err(CommandFailure::new(Exit::NotDone, format!("{provider} does not work")).into()),
                }
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

/// Tests a credential on the server.
pub(super) async fn check(client: &ApiClient, app: &str, provider: &str) -> anyhow::Result<Value> {
    client.act(&format!("/v1/apps/{}/credentials/{provider}/check", segment(app))).await
}

/// Describes the result of a test.
fn tried_text(tried: &Value) -> String {
    match tried["works"].as_bool() {
        Some(true) => "it works".to_owned(),
        _ => format!("it does not work: {}", cell(&tried["cause"])),
    }
}

/// Parses the name of a push service.
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

/// Describes a push service that limits the server or rests.
fn service_text(service: &Value) -> String {
    let origin = cell(&service["origin"]);
    let limit = service["per_minute"].as_u64().map(|limit| format!("takes {limit} a minute"));
    let reason = service["reason"].as_str().map(|reason| format!("rests ({reason})"));
    let backlog = format!("{:.0} s behind", service["backlog_seconds"].as_f64().unwrap_or_default());
    let parts: Vec<String> = limit.into_iter().chain(reason).chain([backlog]).collect();
    format!("{origin} {}", parts.join(", "))
}

fn describe(credentials: &Value) -> String {
    let rows = credentials.as_array().into_iter().flatten().map(|credential| {
        let summary = credential["summary"].as_object();
        let summary = summary.into_iter().flatten().filter(|(_, value)| !value.is_null());
        let mut summary: Vec<String> =
            summary.map(|(name, value)| format!("{name} {}", cell(value))).collect();
        summary.extend(credential["push_services"].as_array().into_iter().flatten().map(service_text));
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
