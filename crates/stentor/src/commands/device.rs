//! `stentor device`: registration, import, queries, and this machine as a device.

use crate::client::{ApiClient, read_key, segment};
use crate::connection::ConnectionArgs;
use crate::device::message::Handling;
use crate::device::outbox::{self, Outgoing};
use crate::device::run::{self, DeviceRun};
use crate::failure::CommandFailure;
use crate::output::{Output, cell, facts, listing, paged, table};
use crate::progress::PhaseProgress;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Body;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stentor_server::words;
use tokio_util::io::ReaderStream;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Register and manage devices
#[derive(Debug, Args)]
pub(crate) struct DeviceArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: DeviceCommand,
}

#[derive(Debug, Subcommand)]
enum DeviceCommand {
    /// Register one device; repeating it changes nothing
    #[command(
        after_help = "Example:\n  stentor device register --platform android --token \"$TOKEN\" --topic news"
    )]
    Register(RegistrationArgs),
    /// Import devices from NDJSON or CSV; repeating it is harmless
    #[command(after_help = "\
Examples:
  stentor device import devices.ndjson
  stentor device import --dry-run devices.csv
  zcat devices.ndjson.gz | stentor device import --format ndjson -

A line of NDJSON: {\"platform\":\"android\",\"token\":\"…\",\"user\":\"u1\",\"topics\":[\"news\"]}
A CSV file names the same fields in its first line; tags and topics are separated by `;`.

A device that has a new address keeps its id, its topics and its past: `former_token` names the address that `token` replaces.
{\"platform\":\"android\",\"token\":\"…\",\"former_token\":\"…\"}")]
    Import(DeviceImportArgs),
    /// Show one device
    #[command(after_help = "\
Example:
  stentor device show dev_…

A device of the gateway that wants sealed messages has `keys`. The server cannot read a message that is sealed for these keys
(`gateway` of a message, with `raw` and `encoding`).")]
    Show {
        /// The device
        device: String,
    },
    /// List devices, page by page
    #[command(after_help = "\
Examples:
  stentor device list --provider fcm --limit 20
  stentor device list --state retired
  stentor device list --provider fcm --address token --limit 1000")]
    List(DeviceListArgs),
    /// Show the messages to a device and their outcomes
    #[command(after_help = "Example:\n  stentor device deliveries dev_…")]
    Deliveries {
        /// The device
        device: String,
        /// The most attempts to show
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Continue after the previous page; the value is its `next`
        #[arg(long)]
        before: Option<String>,
    },
    /// Run as a device of the gateway: register this machine, show its messages or pass them to a command
    #[command(after_help = "\
Examples:
  stentor device run --server https://push.example.org --key \"$JOIN_KEY\" --topic news
  stentor device run --exec 'jq -r .data.command | ./do-it.sh'
  stentor device run --json --count 1

The device registers once, with a key of the scope `join`, and needs no key afterwards. Messages wait while it is offline.
It confirms a message after showing it, or after the command has exited with 0.")]
    Run(DeviceRunArgs),
    /// Send a message from this machine to its app; without a connection it waits for `stentor device run`
    #[command(after_help = "Example:\n  stentor device send temperature=21 unit=celsius")]
    Send(DeviceSendArgs),
    /// Remove a device
    #[command(after_help = "Example:\n  stentor device delete dev_…")]
    Delete {
        /// The device
        device: String,
    },
}

/// One registration.
#[derive(Debug, Args)]
struct RegistrationArgs {
    /// The platform of the device
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(words::PLATFORMS))]
    platform: String,
    /// The push token
    #[arg(long)]
    token: String,
    /// The former push token of the device, which this one replaces
    #[arg(long, value_name = "TOKEN")]
    former_token: Option<String>,
    /// The push service; by default the usual one of the platform
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(words::PROVIDERS))]
    provider: Option<String>,
    /// The user of the device (your own id)
    #[arg(long)]
    user: Option<String>,
    #[command(flatten)]
    texts: DeviceTextArgs,
    /// A tag; may be repeated
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// A topic to subscribe to; may be repeated
    #[arg(long = "topic")]
    topics: Vec<String>,
}

macro_rules! declare_text_args {
    ($(#[doc = $about:literal] $name:ident: $type:ty, $new:literal, $help:literal;)*) => {
        /// The optional texts of a device.
        #[derive(Debug, Args)]
        struct DeviceTextArgs {
            $(#[doc = $help] #[arg(long)] $name: Option<String>,)*
        }

        impl DeviceTextArgs {
            fn fields(&self) -> impl Iterator<Item = (&'static str, &Option<String>)> {
                [$((stringify!($name), &self.$name)),*].into_iter()
            }
        }
    };
}
words::device_texts!(declare_text_args);

/// Options of this machine as a device.
#[derive(Debug, Args)]
struct DeviceRunArgs {
    /// The folder of the device's state
    #[arg(long, env = "STENTOR_DEVICE_DIR", default_value = "stentor-device", value_name = "DIR")]
    folder: PathBuf,
    /// The user of the device (your own id), sent at registration
    #[arg(long)]
    user: Option<String>,
    /// A token signed by the app's backend, which vouches for user, tags and private topics
    #[arg(long, env = "STENTOR_DEVICE_PROOF", value_name = "JWT")]
    proof: Option<String>,
    /// A tag, sent at registration; may be repeated
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// A topic to subscribe to at registration; may be repeated
    #[arg(long = "topic")]
    topics: Vec<String>,
    /// Send encryption keys of this machine to the server: messages are encrypted for them, by the app if it does so, otherwise by the
    /// server
    #[arg(long)]
    encrypt: bool,
    /// A shell command that gets each message as JSON on its standard input
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// An environment variable that the command inherits, in addition to PATH, HOME, LANG and others without secrets; may be repeated
    #[arg(long, value_name = "NAME", requires = "exec")]
    exec_env: Vec<String>,
    /// Print notifications even if a desktop could show them
    #[arg(long)]
    no_desktop: bool,
    /// End after this number of messages
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// A message of this machine.
#[derive(Debug, Args)]
struct DeviceSendArgs {
    /// The folder of the device's state
    #[arg(long, env = "STENTOR_DEVICE_DIR", default_value = "stentor-device", value_name = "DIR")]
    folder: PathBuf,
    /// The content: NAME=VALUE, or NAME alone for an empty value
    #[arg(required = true, value_name = "NAME=VALUE")]
    data: Vec<String>,
    /// The longest time to wait for the app
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,
    /// The message's key: a message sent twice under the same key is the same message
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
}

/// An import.
#[derive(Debug, Args)]
struct DeviceImportArgs {
    /// The file; `-` reads standard input
    file: PathBuf,
    /// The format; by default from the file's name
    #[arg(long, value_enum, ignore_case = true)]
    format: Option<FormatName>,
    /// Check every line and register nothing
    #[arg(long)]
    dry_run: bool,
}

/// The format of an import file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// One JSON object per line
    Ndjson,
    /// A header line, then comma-separated values
    Csv,
}

/// A page of devices.
#[derive(Debug, Args)]
struct DeviceListArgs {
    /// The most devices to show
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// Continue after the previous page; the value is its `next`
    #[arg(long)]
    after: Option<String>,
    /// Only devices of this push service
    #[arg(long)]
    provider: Option<String>,
    /// Only devices of this user
    #[arg(long)]
    user: Option<String>,
    /// Only devices with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only devices in this state; `retired` means a dead token
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(words::DEVICE_STATES))]
    state: Option<String>,
    /// Only devices with this kind of address at the push service; fcm has `fid` and `token`
    #[arg(long, requires = "provider")]
    address: Option<String>,
}

impl DeviceArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        match self.command {
            DeviceCommand::Run(run) => return run.run(&self.connection, output).await,
            DeviceCommand::Send(send) => return send.run(output),
            _ => {}
        }
        let client = self.connection.app_client().await?;
        match self.command {
            DeviceCommand::Run(_) | DeviceCommand::Send(_) => Ok(()),
            DeviceCommand::Register(registration) => {
                let reply = client.post("/v1/devices", &registration.body()).await?;
                output.result(&reply, || facts(&reply))
            }
            DeviceCommand::Import(import) => import.run(&client, output).await,
            DeviceCommand::Show { device } => {
                let device = client.get(&format!("/v1/devices/{}", segment(&device))).await?;
                output.result(&device, || facts(&device))
            }
            DeviceCommand::List(list) => list.run(&client, output).await,
            DeviceCommand::Deliveries { device, limit, before } => {
                deliveries(&client, &device, limit, before, output).await
            }
            DeviceCommand::Delete { device } => {
                client.delete(&format!("/v1/devices/{}", segment(&device))).await?;
                output.result(&json!({"deleted": device}), || format!("deleted {device}"))
            }
        }
    }
}

impl DeviceRunArgs {
    async fn run(self, connection: &ConnectionArgs, output: Output) -> anyhow::Result<()> {
        let key = match (&connection.key, &connection.key_file) {
            (Some(key), _) => Some(key.0.clone()),
            (None, Some(file)) => Some(read_key(file)?.0),
            (None, None) => None,
        };
        let details =
            run::device_details(self.user.as_deref(), &self.tags, &self.topics, self.proof.as_deref());
        let handling = Handling {
            command: self.exec,
            variables: self.exec_env,
            json: output.is_json(),
            desktop: !self.no_desktop,
        };
        let server = connection.server.clone();
        let (folder, encrypt, count) = (self.folder, self.encrypt, self.count);
        let (authority, former_asked) = (connection.authority()?, None);
        let run =
            DeviceRun { folder, server, authority, key, details, encrypt, handling, count, former_asked };
        run.run().await
    }
}

impl DeviceSendArgs {
    fn run(self, output: Output) -> anyhow::Result<()> {
        let pair = |text: &String| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (name.to_owned(), Value::from(value))
        };
        let name = || format!("{:016x}{:08x}", run::nanos_now(), std::process::id());
        let message_id = self.id.unwrap_or_else(name);
        if message_id.contains(['/', '\0']) || message_id.starts_with('.') {
            return Err(CommandFailure::usage("--id must be a plain name").into());
        }
        let message =
            Outgoing { message_id, data: self.data.iter().map(pair).collect(), ttl_seconds: self.ttl };
        outbox::put(&self.folder, &message)?;
        let accepted = json!({"message_id": message.message_id});
        output.result(&accepted, || format!("{} waits to be sent", message.message_id))
    }
}

async fn deliveries(
    client: &ApiClient,
    device: &str,
    limit: u32,
    before: Option<String>,
    output: Output,
) -> anyhow::Result<()> {
    let mut query = vec![("limit", limit.to_string())];
    query.extend(before.map(|before| ("before", before)));
    let page = client.get_with(&format!("/v1/devices/{}/deliveries", segment(device)), &query).await?;
    output.result(&page, || {
        let fields = ["message", "provider", "attempt", "state", "reason", "ambiguous", "at"];
        paged(listing(&page["deliveries"], fields), &page, "--before")
    })
}

impl RegistrationArgs {
    fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("platform".to_owned(), json!(self.platform));
        body.insert("token".to_owned(), json!(self.token));
        let optional =
            [("provider", &self.provider), ("former_token", &self.former_token), ("user", &self.user)];
        for (field, value) in optional.into_iter().chain(self.texts.fields()) {
            if let Some(value) = value {
                body.insert(field.to_owned(), json!(value));
            }
        }
        for (field, values) in [("tags", &self.tags), ("topics", &self.topics)] {
            if !values.is_empty() {
                body.insert(field.to_owned(), json!(values));
            }
        }
        Value::Object(body)
    }
}

impl DeviceListArgs {
    async fn run(self, client: &ApiClient, output: Output) -> anyhow::Result<()> {
        let mut query = vec![("limit", self.limit.to_string())];
        let optional = [
            ("after", self.after),
            ("provider", self.provider),
            ("user", self.user),
            ("tag", self.tag),
            ("state", self.state),
            ("address", self.address),
        ];
        query.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let page = client.get_with("/v1/devices", &query).await?;
        output.result(&page, || {
            let fields =
                ["id", "platform", "provider", "token_hint", "user", "tags", "state", "registered_at"];
            let is_of_dead = page["devices"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["retired"].is_object()));
            if is_of_dead {
                return paged(with_reasons(&page["devices"]), &page, "--after");
            }
            paged(listing(&page["devices"], fields), &page, "--after")
        })
    }
}

/// Lists devices with the time and reason of their retirement, for lists that include retired ones.
fn with_reasons(devices: &Value) -> String {
    let rows = devices.as_array().into_iter().flatten().map(|one| {
        let [id, provider, hint, user, state] =
            ["id", "provider", "token_hint", "user", "state"].map(|name| cell(&one[name]));
        [id, provider, hint, user, state, cell(&one["retired"]["reason"]), cell(&one["retired"]["at"])]
    });
    table(["id", "provider", "token_hint", "user", "state", "reason", "at"], rows)
}

impl DeviceImportArgs {
    async fn run(self, client: &ApiClient, output: Output) -> anyhow::Result<()> {
        let format = self.format()?;
        let (body, size_bytes, sent_bytes) = self.open().await?;
        let (name, content_type) = match format {
            FormatName::Ndjson => ("ndjson", "application/x-ndjson"),
            FormatName::Csv => ("csv", "text/csv"),
        };
        let query = [("format", name.to_owned()), ("dry_run", self.dry_run.to_string())];
        let import = client.stream("/v1/devices/import", &query, content_type, body);
        let reply = watch(import, size_bytes, &sent_bytes).await?;
        output.result(&reply, || describe(&reply))?;
        match reply["failed"].as_u64() {
            Some(0) | None => Ok(()),
            Some(failed) => {
                let sentence = format!(
                    "{failed} lines are not registered: correct them and run the whole file again; that is safe"
                );
                Err(CommandFailure::not_done(sentence).into())
            }
        }
    }

    fn format(&self) -> anyhow::Result<FormatName> {
        let by_name = match self.file.extension().and_then(|extension| extension.to_str()) {
            Some("ndjson" | "jsonl") => Some(FormatName::Ndjson),
            Some("csv") => Some(FormatName::Csv),
            _ => None,
        };
        let format = self.format.or(by_name);
        format.ok_or_else(|| {
            CommandFailure::usage("name the format of the file: --format ndjson or --format csv").into()
        })
    }

    async fn open(&self) -> anyhow::Result<(Body, Option<u64>, Arc<AtomicU64>)> {
        let counter = Arc::new(AtomicU64::new(0));
        if self.file == Path::new("-") {
            let body = counted(tokio::io::stdin(), &counter);
            return Ok((body, None, counter));
        }
        let unreadable = |error: std::io::Error| {
            CommandFailure::usage(format!("{} cannot be read: {error}", self.file.display()))
        };
        let file = tokio::fs::File::open(&self.file).await.map_err(unreadable)?;
        let size = file.metadata().await.map_err(unreadable)?.len();
        let body = counted(file, &counter);
        Ok((body, Some(size), counter))
    }
}

fn counted(reader: impl tokio::io::AsyncRead + Send + 'static, counter: &Arc<AtomicU64>) -> Body {
    use futures_util::TryStreamExt;
    let counter = Arc::clone(counter);
    let count = move |bytes: &bytes::Bytes| {
        // `Relaxed`: the count is for the progress only, and no other memory depends on it.
        counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    };
    Body::wrap_stream(ReaderStream::with_capacity(reader, 64 * 1024).inspect_ok(count))
}

async fn watch(
    import: impl Future<Output = anyhow::Result<Value>>,
    size_bytes: Option<u64>,
    sent_bytes: &AtomicU64,
) -> anyhow::Result<Value> {
    let mut progress = PhaseProgress::start("bytes", size_bytes.unwrap_or(0));
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    let mut import = std::pin::pin!(import);
    let reply = loop {
        tokio::select! {
            reply = &mut import => break reply,
            _ = ticks.tick() => {
                let sent = sent_bytes.load(Ordering::Relaxed);
                progress.set_total(size_bytes.unwrap_or(sent));
                progress.update(sent);
            }
        }
    };
    progress.finish(sent_bytes.load(Ordering::Relaxed));
    reply
}

fn describe(reply: &Value) -> String {
    let mut summary = reply.clone();
    let errors = summary.as_object_mut().and_then(|fields| fields.remove("errors"));
    let errors = errors.filter(|errors| errors.as_array().is_some_and(|errors| !errors.is_empty()));
    match errors {
        Some(errors) => {
            format!(
                "{}\n\n{}",
                facts(&summary),
                listing(&errors, ["line", "field", "code", "detail", "hint"])
            )
        }
        None => facts(&summary),
    }
}
