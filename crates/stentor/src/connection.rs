//! The connection options of every client command: the server's address and the caller's key.

use crate::client::{ApiClient, Key, read_key};
use crate::failure::{CommandFailure, Exit};
use anyhow::Context;
use serde_json::Value;
use std::path::PathBuf;

/// Options for the server's address and the caller's key.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// The URL of the server
    #[arg(
        long,
        global = true,
        env = "STENTOR_SERVER",
        default_value = "http://127.0.0.1:8686",
        value_name = "URL"
    )]
    pub(crate) server: String,
    /// The certificate (PEM) of the authority that signed the server's certificate, in addition to the system's trusted ones; `--ca` is the
    /// same, except for a command with its own `--ca`
    #[arg(long, global = true, env = "STENTOR_CA", value_name = "FILE")]
    pub(crate) server_ca: Option<PathBuf>,
    /// The API key; the default is the root key of a server on this machine
    #[arg(long, global = true, env = "STENTOR_KEY", hide_env_values = true, value_name = "KEY")]
    pub(crate) key: Option<Key>,
    /// A file that holds the API key
    #[arg(long, global = true, env = "STENTOR_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    pub(crate) key_file: Option<PathBuf>,
    /// The app to act for; required with the root key if there is more than one app
    #[arg(long, global = true, env = "STENTOR_APP", value_name = "APP")]
    pub(crate) app: Option<String>,
    /// The data directory of a server on this machine, which contains its root key
    #[arg(
        long,
        global = true,
        env = "STENTOR__DATA_DIR",
        default_value = "stentor-data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
}

impl ConnectionArgs {
    /// Connects with the key from the options, for commands that are not about one app.
    pub(crate) fn client(&self) -> anyhow::Result<ApiClient> {
        self.trusting(ApiClient::new(&self.server, Some(self.find_key()?), self.app.clone())?)
    }

    /// Connects without a key.
    pub(crate) fn keyless_client(&self) -> anyhow::Result<ApiClient> {
        self.trusting(ApiClient::new(&self.server, None, None)?)
    }

    /// Adds the given authority to those that a client trusts.
    fn trusting(&self, client: ApiClient) -> anyhow::Result<ApiClient> {
        match self.authority()? {
            Some(pem) => {
                client.with_authority(&pem).map_err(|_| self.no_authority("holds no certificate in PEM"))
            }
            None => Ok(client),
        }
    }

    /// Reads the certificate of the server's authority, if one is given.
    pub(crate) fn authority(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let read = |path| std::fs::read(path).map_err(|error| self.no_authority(&error.to_string()));
        self.server_ca.as_ref().map(read).transpose()
    }

    fn no_authority(&self, why: &str) -> anyhow::Error {
        let path = self.server_ca.as_deref().unwrap_or_else(|| std::path::Path::new(""));
        CommandFailure::usage(format!("--ca {}: {why}", path.display())).into()
    }

    /// Connects for commands about one app: the key's own app, or with the root key the only app.
    pub(crate) async fn app_client(&self) -> anyhow::Result<ApiClient> {
        let client = self.client()?;
        if self.app.is_some() {
            return Ok(client);
        }
        match client.get("/v1/apps").await {
            Ok(apps) => Ok(client.for_app(only_app(&apps)?)),
            // A server of an earlier version does not report the app of a key.
            Err(error) if is_app_key(&error) => Ok(client),
            Err(error) => Err(error),
        }
    }

    /// Connects and returns the id of the app, for commands with the app in their path.
    pub(crate) async fn app_id(&self) -> anyhow::Result<(ApiClient, String)> {
        let client = self.app_client().await?;
        match client.app() {
            Some(app) => Ok((client.clone(), app.to_owned())),
            None => Err(CommandFailure::usage("name the app with --app app_…").into()),
        }
    }

    fn find_key(&self) -> anyhow::Result<Key> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        if let Some(path) = &self.key_file {
            return read_key(path).with_context(|| format!("the key file {} cannot be read", path.display()));
        }
        let path = self.data_dir.join("root.key");
        read_key(&path).map_err(|_| {
            let sentence = format!(
                "no key: give one with --key or STENTOR_KEY, or point --data-dir at the server's data ({} cannot be read)",
                path.display()
            );
            CommandFailure::new(Exit::Denied, sentence).into()
        })
    }
}

fn is_app_key(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CommandFailure>().and_then(|failure| failure.code.as_deref()) == Some("forbidden")
}

fn only_app(apps: &Value) -> anyhow::Result<String> {
    let ids: Vec<&str> =
        apps["apps"].as_array().into_iter().flatten().filter_map(|app| app["id"].as_str()).collect();
    match ids.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => {
            Err(CommandFailure::usage("there is no app yet: make one with `stentor app create NAME`").into())
        }
        many => {
            let sentence =
                format!("there are {} apps: name one with --app ({})", many.len(), many.join(", "));
            Err(CommandFailure::usage(sentence).into())
        }
    }
}
