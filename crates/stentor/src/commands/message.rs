//! `stentor message`: send, show, cancel, watch.

mod overrides;

use self::overrides::OverrideArgs;
use super::campaign::follow;
use crate::client::{ApiClient, segment};
use crate::connection::ConnectionArgs;
use crate::failure::CommandFailure;
use crate::output::{Output, cell, facts, listing, paged};
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_server::words;

/// Send and manage messages
#[derive(Debug, Args)]
pub(crate) struct MessageArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: MessageCommand,
}

#[derive(Debug, Subcommand)]
enum MessageCommand {
    /// Send a message to one target; returns when the message is on disk
    #[command(after_help = "\
Examples:
  stentor message send --topic news --title Hello --body \"from Stentor\"
  stentor message send --everyone --data kind=sync --collapse-key sync --ttl-seconds 3600
  stentor message send --condition \"'a' in topics && ('b' in topics || 'c' in topics)\" --body Hi --dry-run
  stentor message send --everyone --title Hi --dry-run --explain
  stentor message send --user u1 --body Hi --send-at 2027-01-01T09:00:00Z --idempotency-key 4711")]
    Send(Box<SendArgs>),
    /// Show a message
    #[command(after_help = "Example:\n  stentor message show msg_…")]
    Show {
        /// The message
        message: String,
    },
    /// List the devices of a message's audience with the outcome for each
    #[command(after_help = "\
Examples:
  stentor message deliveries msg_… --state rejected
  stentor message deliveries msg_… --limit 1000 --json")]
    Deliveries {
        /// The message
        message: String,
        /// Only deliveries in this state
        #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(words::DELIVERY_STATES))]
        state: Option<String>,
        /// The most deliveries to show
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Continue after the previous page; the value is its `next`
        #[arg(long)]
        after: Option<String>,
    },
    /// Cancel the deliveries of a message that have not been sent yet
    #[command(after_help = "Example:\n  stentor message cancel msg_…")]
    Cancel {
        /// The message
        message: String,
    },
    /// Watch a message until its last delivery has ended
    #[command(after_help = "Example:\n  stentor message watch msg_…")]
    Watch {
        /// The message
        message: String,
    },
}

/// A message to be sent.
#[derive(Debug, Args)]
struct SendArgs {
    #[command(flatten)]
    content: ContentArgs,
    /// Send at this instant (RFC 3339) instead of now
    #[arg(long, value_name = "INSTANT")]
    send_at: Option<String>,
    /// Validate, count the audience, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: show the exact request for one device of each push service, without its token and without secrets
    #[arg(long, requires = "dry_run")]
    explain: bool,
    /// The idempotency key, which makes this command safe to repeat
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Watch until the last delivery has ended
    #[arg(long, conflicts_with_all = ["dry_run", "send_at"])]
    watch: bool,
}

/// The target and the content of a message.
#[derive(Debug, Args)]
pub(super) struct ContentArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Start exactly on time; otherwise messages due on a full minute start some seconds later
    #[arg(long)]
    exact: bool,
    /// The visible title
    #[arg(long)]
    title: Option<String>,
    /// The visible text
    #[arg(long)]
    body: Option<String>,
    /// The URL of a visible image
    #[arg(long, value_name = "URL")]
    image: Option<String>,
    /// Data for the app; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    data: Vec<(String, String)>,
    /// The urgency
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(words::PRIORITIES))]
    priority: Option<String>,
    /// The longest waiting time, in seconds
    #[arg(long, value_name = "SECONDS")]
    ttl_seconds: Option<u64>,
    /// A newer message with the same key replaces an older one that is still waiting
    #[arg(long, value_name = "KEY")]
    collapse_key: Option<String>,
    #[command(flatten)]
    overrides: OverrideArgs,
    /// Read the request from a JSON file; options on the command line override it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// The target of a message.
#[derive(Debug, Args)]
#[group(required = false, multiple = true)]
struct TargetArgs {
    /// To a device; may be repeated
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// To a push token; needs --platform
    #[arg(long, value_name = "TOKEN", requires = "platform")]
    token: Option<String>,
    /// The platform of the token's device
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(words::PLATFORMS), requires = "token")]
    platform: Option<String>,
    /// The push service of the token; by default the usual one of the platform
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(words::PROVIDERS), requires = "token")]
    provider: Option<String>,
    /// To all devices of a user
    #[arg(long)]
    user: Option<String>,
    /// To all devices of a group
    #[arg(long)]
    group: Option<String>,
    /// To all devices that subscribe to a topic
    #[arg(long)]
    topic: Option<String>,
    /// To all devices with topics that satisfy a condition
    #[arg(long)]
    condition: Option<String>,
    /// To every device of the app
    #[arg(long)]
    everyone: bool,
}

impl MessageArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let client = self.connection.app_client().await?;
        match self.command {
            MessageCommand::Send(send) => return send.run(&client, output).await,
            MessageCommand::Watch { message } => return follow(&client, &message, output).await,
            MessageCommand::Show { message } => {
                let message = client.get(&format!("/v1/messages/{}", segment(&message))).await?;
                output.result(&message, || facts(&message))?;
            }
            MessageCommand::Deliveries { message, state, limit, after } => {
                let mut query = vec![("limit", limit.to_string())];
                query.extend(state.map(|state| ("state", state)));
                query.extend(after.map(|after| ("after", after)));
                let path = format!("/v1/messages/{}/deliveries", segment(&message));
                let page = client.get_with(&path, &query).await?;
                output.result(&page, || {
                    let fields = ["device", "provider", "attempt", "state", "reason", "ambiguous", "at"];
                    paged(listing(&page["deliveries"], fields), &page, "--after")
                })?;
            }
            MessageCommand::Cancel { message } => {
                let ledger = client.act(&format!("/v1/campaigns/{}/cancel", segment(&message))).await?;
                output.result(&ledger, || format!("{message} is {}", cell(&ledger["state"])))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl SendArgs {
    async fn run(self, client: &ApiClient, output: Output) -> anyhow::Result<ExitCode> {
        let mut body = self.content.request()?;
        if let Some(send_at) = self.send_at {
            body.insert("send_at".to_owned(), json!(send_at));
        }
        if self.dry_run {
            body.insert("dry_run".to_owned(), json!(true));
        }
        let reply =
            client.post_once("/v1/messages", self.idempotency_key.as_deref(), &Value::Object(body)).await?;
        if self.watch {
            output.say(&format!("{} is safe on disk", cell(&reply["id"])))?;
            return follow(client, &cell(&reply["campaign"]), output).await;
        }
        output.result(&reply, || if self.explain { requests_text(&reply) } else { facts(&reply) })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the requests of a dry run as HTTP writes them.
fn requests_text(reply: &Value) -> String {
    let requests = reply["requests"].as_array().into_iter().flatten().map(|request| {
        let headers = request["headers"].as_object().into_iter().flatten();
        let headers: Vec<String> = headers.map(|(name, value)| format!("{name}: {}", cell(value))).collect();
        let (provider, url) = (cell(&request["provider"]), cell(&request["url"]));
        format!("{provider}\nPOST {url}\n{}\n\n{}\n", headers.join("\n"), cell(&request["body"]))
    });
    requests.collect::<Vec<_>>().join("\n")
}

impl ContentArgs {
    /// Builds the request: the file first, then the options over it.
    pub(super) fn request(&self) -> anyhow::Result<Map<String, Value>> {
        let mut request = self.read_file()?;
        let mut put = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                request.insert(field.to_owned(), value);
            }
        };
        put("target", self.target.value()?);
        put("notification", self.notification());
        put("data", self.data());
        put("priority", self.priority.as_deref().map(Value::from));
        put("ttl_seconds", self.ttl_seconds.map(Value::from));
        put("collapse_key", self.collapse_key.as_deref().map(Value::from));
        put("exact", self.exact.then_some(Value::Bool(true)));
        self.overrides.0.iter().for_each(|(field, value)| put(field, Some(value.clone())));
        if request.contains_key("target") {
            return Ok(request);
        }
        let sentence =
            "name the target: --device, --token, --user, --group, --topic, --condition or --everyone";
        Err(CommandFailure::usage(sentence).into())
    }

    fn read_file(&self) -> anyhow::Result<Map<String, Value>> {
        let Some(path) = &self.file else { return Ok(Map::new()) };
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
            CommandFailure::usage(format!("{} is not a message as JSON: {error}", path.display())).into()
        })
    }

    fn notification(&self) -> Option<Value> {
        let parts = [("title", &self.title), ("body", &self.body), ("image", &self.image)];
        let given: Map<String, Value> = parts
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?))))
            .collect();
        (!given.is_empty()).then_some(Value::Object(given))
    }

    fn data(&self) -> Option<Value> {
        let data: Map<String, Value> =
            self.data.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        (!data.is_empty()).then_some(Value::Object(data))
    }
}

impl TargetArgs {
    /// Returns the one target that was named, if any.
    fn value(&self) -> anyhow::Result<Option<Value>> {
        let named = |name: &str, value: &Option<String>| value.as_ref().map(|value| json!({ name: value }));
        let devices = match self.devices.as_slice() {
            [] => None,
            [device] => Some(json!({ "device": device })),
            devices => Some(json!({ "devices": devices })),
        };
        let targets = [
            devices,
            self.token(),
            named("user", &self.user),
            named("group", &self.group),
            named("topic", &self.topic),
            named("condition", &self.condition),
            self.everyone.then(|| json!("everyone")),
        ];
        let mut given = targets.into_iter().flatten();
        let target = given.next();
        if given.next().is_some() {
            return Err(CommandFailure::usage(
                "a message has one target: give only one of the options that name it",
            )
            .into());
        }
        Ok(target)
    }

    fn token(&self) -> Option<Value> {
        let mut target = json!({"token": {"platform": self.platform, "token": self.token.as_ref()?}});
        if let Some(provider) = &self.provider {
            target["token"]["provider"] = json!(provider);
        }
        Some(target)
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
