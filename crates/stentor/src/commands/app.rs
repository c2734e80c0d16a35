//! `stentor app`: tenants, their API keys and their credentials.

use super::account::{AccountCommand, ScopeName};
use super::credential::CredentialCommand;
use super::webhook::WebhookCommand;
use crate::client::{ApiClient, segment};
use crate::connection::ConnectionArgs;
use crate::output::{Output, cell, facts, listing};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Create and manage apps, their API keys and their credentials
#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: AppCommand,
}

#[derive(Debug, Subcommand)]
enum AppCommand {
    /// Create an app and its first key
    #[command(after_help = "Example:\n  stentor app create my-app")]
    Create {
        /// The app's name
        name: String,
        /// Create no key
        #[arg(long)]
        no_key: bool,
    },
    /// List all apps
    #[command(after_help = "Example:\n  stentor app list --json")]
    List,
    /// Show one app
    #[command(after_help = "Example:\n  stentor app show --app app_…")]
    Show,
    /// Delete an app with everything in it
    #[command(after_help = "Example:\n  stentor app delete --app app_… --yes")]
    Delete {
        /// Confirm that everything in this app is deleted
        #[arg(long, required = true)]
        yes: bool,
    },
    /// Create, list and delete API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Create, list and delete service accounts, for app servers that use a push service's own API
    #[command(subcommand)]
    ServiceAccount(AccountCommand),
    /// Set, list and delete credentials for push services
    #[command(subcommand)]
    Credential(CredentialCommand),
    /// Set, show and delete the webhook to which messages of devices are posted
    #[command(subcommand)]
    Webhook(WebhookCommand),
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Create a key; its secret is shown only now
    #[command(after_help = "Example:\n  stentor app key create --name backend --scope send --scope register")]
    Create {
        /// The name of the key, for example its purpose
        #[arg(long, default_value = "key")]
        name: String,
        /// A scope of the key; all scopes by default
        #[arg(long = "scope", value_enum, ignore_case = true)]
        scopes: Vec<ScopeName>,
    },
    /// List the keys, without their secrets
    #[command(after_help = "Example:\n  stentor app key list")]
    List,
    /// Delete a key; it stops working at once
    #[command(after_help = "Example:\n  stentor app key delete key_…")]
    Delete {
        /// The key's id
        key: String,
    },
}

impl AppArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let connection = &self.connection;
        match self.command {
            AppCommand::Create { name, no_key } => create(&connection.client()?, &name, no_key, output).await,
            AppCommand::List => {
                let apps = connection.client()?.get("/v1/apps").await?;
                output.result(&apps, || listing(&apps["apps"], ["id", "name", "created_at"]))
            }
            AppCommand::Show => {
                let (client, app) = connection.app_id().await?;
                let app = client.get(&format!("/v1/apps/{}", segment(&app))).await?;
                output.result(&app, || facts(&app))
            }
            AppCommand::Delete { .. } => {
                let (client, app) = connection.app_id().await?;
                client.delete(&format!("/v1/apps/{}", segment(&app))).await?;
                output.result(&json!({"deleted": app}), || format!("deleted {app}"))
            }
            AppCommand::Key(command) => {
                let (client, app) = connection.app_id().await?;
                command.run(&client, &app, output).await
            }
            AppCommand::ServiceAccount(command) => {
                let (client, app) = connection.app_id().await?;
                command.run(&client, &app, &connection.server, output).await
            }
            AppCommand::Webhook(command) => {
                let (client, app) = connection.app_id().await?;
                command.run(&client, &app, output).await
            }
            AppCommand::Credential(command) => {
                let (client, app) = connection.app_id().await?;
                command.run(&client, &app, output).await
            }
        }
    }
}

async fn create(client: &ApiClient, name: &str, no_key: bool, output: Output) -> anyhow::Result<()> {
    let mut app = client.post("/v1/apps", &json!({"name": name})).await?;
    if !no_key {
        app["key"] = create_key(client, &cell(&app["id"]), "first", &[]).await?;
    }
    output.result(&app, || {
        let made = format!("app  {}  {}", cell(&app["id"]), cell(&app["name"]));
        match app["key"]["secret"].as_str() {
            Some(secret) => format!("{made}\nkey  {secret}  (shown only now)"),
            None => made,
        }
    })
}

async fn create_key(
    client: &ApiClient,
    app: &str,
    name: &str,
    scopes: &[ScopeName],
) -> anyhow::Result<Value> {
    let all = [ScopeName::Send, ScopeName::Register, ScopeName::Admin];
    let scopes = if scopes.is_empty() { &all } else { scopes };
    let words: Vec<&str> = scopes.iter().map(|scope| scope.word()).collect();
    client.post(&format!("/v1/apps/{}/keys", segment(app)), &json!({"name": name, "scopes": words})).await
}

impl KeyCommand {
    async fn run(self, client: &ApiClient, app: &str, output: Output) -> anyhow::Result<()> {
        let path = format!("/v1/apps/{}/keys", segment(app));
        match self {
            Self::Create { name, scopes } => {
                let key = create_key(client, app, &name, &scopes).await?;
                output.result(&key, || facts(&key))
            }
            Self::List => {
                let keys = client.get(&path).await?;
                output.result(&keys, || listing(&keys["keys"], ["id", "name", "scopes", "created_at"]))
            }
            Self::Delete { key } => {
                client.delete(&format!("{path}/{}", segment(&key))).await?;
                output.result(&json!({"deleted": key}), || format!("deleted {key}"))
            }
        }
    }
}
