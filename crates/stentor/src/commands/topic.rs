//! `stentor topic`: named channels that devices subscribe to.

use crate::client::{ApiClient, segment};
use crate::connection::ConnectionArgs;
use crate::output::{Output, cell, facts, listing};
use clap::{Args, Subcommand};
use serde_json::json;

/// Most devices that the API accepts in one request.
const DEVICES_PER_REQUEST: usize = 1000;

/// Manage topics and their subscriptions
#[derive(Debug, Args)]
pub(crate) struct TopicArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: TopicCommand,
}

#[derive(Debug, Subcommand)]
enum TopicCommand {
    /// List the topics
    #[command(after_help = "Example:\n  stentor topic list")]
    List,
    /// Show one topic
    #[command(after_help = "Example:\n  stentor topic show news")]
    Show {
        /// The topic
        topic: String,
    },
    /// Subscribe devices; a topic is created with its first subscription
    #[command(after_help = "Example:\n  stentor topic subscribe news dev_… dev_…")]
    Subscribe {
        /// The topic
        topic: String,
        /// The devices
        #[arg(required = true)]
        devices: Vec<String>,
    },
    /// End subscriptions
    #[command(after_help = "Example:\n  stentor topic unsubscribe news dev_…")]
    Unsubscribe {
        /// The topic
        topic: String,
        /// The devices
        #[arg(required = true)]
        devices: Vec<String>,
    },
    /// Delete a topic with its subscriptions
    #[command(after_help = "Example:\n  stentor topic delete news")]
    Delete {
        /// The topic
        topic: String,
    },
}

impl TopicArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let client = self.connection.app_client().await?;
        match self.command {
            TopicCommand::List => {
                let topics = client.get_all("/v1/topics", "topics").await?;
                output.result(&topics, || listing(&topics["topics"], ["name", "device_count"]))
            }
            TopicCommand::Show { topic } => {
                let topic = client.get(&format!("/v1/topics/{}", segment(&topic))).await?;
                output.result(&topic, || facts(&topic))
            }
            TopicCommand::Subscribe { topic, devices } => {
                let path = format!("/v1/topics/{}/subscriptions", segment(&topic));
                change(&client, &path, &devices, output).await
            }
            TopicCommand::Unsubscribe { topic, devices } => {
                let path = format!("/v1/topics/{}/subscriptions/remove", segment(&topic));
                change(&client, &path, &devices, output).await
            }
            TopicCommand::Delete { topic } => {
                client.delete(&format!("/v1/topics/{}", segment(&topic))).await?;
                output.result(&json!({"deleted": topic}), || format!("deleted {topic}"))
            }
        }
    }
}

async fn change(client: &ApiClient, path: &str, devices: &[String], output: Output) -> anyhow::Result<()> {
    let (mut changed, mut unchanged, mut unknown) = (0, 0, Vec::new());
    for batch in devices.chunks(DEVICES_PER_REQUEST) {
        let reply = client.post(path, &json!({ "devices": batch })).await?;
        changed += reply["changed"].as_u64().unwrap_or(0);
        unchanged += reply["unchanged"].as_u64().unwrap_or(0);
        unknown.extend(reply["unknown_devices"].as_array().into_iter().flatten().cloned());
    }
    let result = json!({"changed": changed, "unchanged": unchanged, "unknown": unknown});
    let counts = format!("changed {changed}, unchanged {unchanged}, unknown {}", unknown.len());
    output
        .result(&result, || unknown.iter().fold(counts, |lines, device| lines + "\nunknown " + &cell(device)))
}
