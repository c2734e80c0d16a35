//! `stentor node`: the servers that use the store.

use crate::connection::ConnectionArgs;
use crate::output::{Output, cell, listing, table};
use clap::{Args, Subcommand};
use serde_json::Value;

/// Show the servers that share the store
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Debug, Subcommand)]
enum NodeCommand {
    /// List the servers with their roles, versions and parked lanes
    #[command(after_help = "\
Examples:
  stentor node list
  stentor node list --json

Needs the root key. `silent_ms` is the time since a server's last sign of life; after `node.silence_max_ms` the others take it for
dead and it is not listed any more.")]
    List,
}

impl NodeArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let NodeCommand::List = self.command;
        let found = self.connection.client()?.get("/v1/nodes").await?;
        output.result(&found, || shown(&found["nodes"]))
    }
}

/// Formats the servers, and below them the parked lanes.
fn shown(nodes: &Value) -> String {
    let fields = ["instance", "host", "roles", "version", "schema_version", "silent_ms", "fires", "answers"];
    let servers = listing(nodes, fields);
    let rows: Vec<_> = nodes.as_array().into_iter().flatten().flat_map(resting).collect();
    if rows.is_empty() {
        return servers;
    }
    format!("{servers}\n\n{}", table(["at", "app", "provider", "reason", "until", "detail"], rows))
}

fn resting(node: &Value) -> impl Iterator<Item = [String; 6]> {
    let lanes = node["parked"].as_array().into_iter().flatten();
    lanes.map(|lane| {
        let [app, provider, reason, until, detail] =
            ["app", "provider", "reason", "until", "detail"].map(|field| cell(&lane[field]));
        [cell(&node["instance"]), app, provider, reason, until, detail]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lanes_that_rest_stand_below_the_servers() {
        let lane =
            json!({"app": "app_1", "provider": "fcm", "reason": "credential_refused", "detail": "no key"});
        let quiet = json!({"instance": "1f", "host": "a", "roles": ["api"], "version": "1", "silent_ms": 3,
            "fires": true, "answers": false, "parked": []});
        let mut resting = quiet.clone();
        (resting["instance"], resting["parked"]) = (json!("2f"), json!([lane]));
        let text = shown(&json!([quiet, resting]));
        assert!(text.contains("2f  app_1  fcm"), "{text}");
        assert!(!shown(&json!([quiet])).contains("provider"));
    }
}
