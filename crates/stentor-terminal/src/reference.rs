//! The pages of all commands, one for each group.

use crate::failure::{CommandFailure, EXIT_CODES};
use crate::output::{Output, line};
use clap::Args;
use serde_json::{Value, json};

/// List all commands and their options
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor commands
  stentor commands --markdown
  stentor commands --markdown device
  stentor commands --index")]
pub struct CommandsArgs {
    /// Print a Markdown page of one group of commands, or of all without GROUP
    #[arg(long)]
    markdown: bool,
    /// Print a Markdown page that links to the page of each group
    #[arg(long, conflicts_with = "markdown")]
    index: bool,
    /// The first word of the commands
    #[arg(value_name = "GROUP", requires = "markdown")]
    group: Option<String>,
}

impl CommandsArgs {
    /// Prints the commands of a tree.
    pub fn run(&self, tree: clap::Command, output: Output) -> anyhow::Result<()> {
        self.run_with(tree, &[], output)
    }

    /// Prints the commands of a tree, and those of a neighbour in its own form.
    pub fn run_with(&self, mut tree: clap::Command, others: &[Value], output: Output) -> anyhow::Result<()> {
        tree.build();
        if self.index {
            return line(overview(&tree).trim_end());
        }
        if self.markdown {
            return line(self.page(&tree)?.trim_end());
        }
        let mut commands = Vec::new();
        leaves(&tree, &mut |path, command| commands.push(json!({"command": path, "about": about(command)})));
        commands.extend_from_slice(others);
        output.result(&json!({ "commands": commands }), || listing(&commands))
    }

    fn page(&self, tree: &clap::Command) -> anyhow::Result<String> {
        let Some(group) = &self.group else { return Ok(shown(tree).map(group_page).collect()) };
        let command = tree.find_subcommand(group);
        let command =
            command.ok_or_else(|| CommandFailure::usage(format!("there is no command `{group}`")))?;
        Ok(group_page(command))
    }
}

fn listing(commands: &[Value]) -> String {
    let text = |command: &Value, field: &str| command[field].as_str().unwrap_or_default().to_owned();
    let rows = || commands.iter().map(|command| (text(command, "command"), text(command, "about")));
    let width = rows().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows().map(|(name, about)| format!("{name:width$}  {about}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes the page that leads to all groups.
fn overview(tree: &clap::Command) -> String {
    let mut page = format!(
        "# `{}`\n\n\
         Every command takes `--json` (one JSON object on the last line of standard output) and `--help`.\n\
         Progress and errors go to standard error.\n\
         \n| commands | purpose |\n|---|---|\n",
        tree.get_bin_name().unwrap_or_else(|| tree.get_name())
    );
    for group in shown(tree) {
        let name = group.get_name();
        page.push_str(&format!("| [{name}]({name}.md) | {} |\n", about(group)));
    }
    page.push_str(&format!("\n```text\n{EXIT_CODES}\n```\n"));
    page
}

/// Writes the page of one group.
fn group_page(group: &clap::Command) -> String {
    let path = group.get_bin_name().unwrap_or_else(|| group.get_name());
    let mut page = format!("# `{path}`\n\n[All commands](README.md)\n");
    if group.has_subcommands() {
        leaves(group, &mut |path, command| page.push_str(&section(path, command)));
    } else {
        page.push_str(&section(path, group));
    }
    page
}

fn section(path: &str, command: &clap::Command) -> String {
    let mut section = format!("\n## {path}\n\n{}\n\n", about(command));
    let usage = command.clone().render_usage().to_string();
    section.push_str(&format!("```text\n{}\n```\n", usage.trim()));
    let shown: Vec<_> = command.get_arguments().filter(|argument| !is_everywhere(argument)).collect();
    if !shown.is_empty() {
        section.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for argument in shown {
        section.push_str(&format!("| `{}` | {} |\n", name(argument), meaning(argument)));
    }
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        section.push_str(&format!("\n```text\n{}\n```\n", help.trim()));
    }
    section
}
fn is_everywhere(argument: &clap::Arg) -> bool {
    argument.is_hide_set() || matches!(argument.get_id().as_str(), "help" | "version" | "json")
}

fn name(argument: &clap::Arg) -> String {
    let value = argument.get_value_names().and_then(<[_]>::first).map(|value| format!("<{value}>"));
    let takes_value = argument.get_action().takes_values();
    match (argument.get_long(), value.filter(|_| takes_value)) {
        (Some(long), Some(value)) => format!("--{long} {value}"),
        (Some(long), None) => format!("--{long}"),
        (None, value) => value.unwrap_or_else(|| argument.get_id().to_string()),
    }
}

fn meaning(argument: &clap::Arg) -> String {
    let mut meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !choices.is_empty() {
        meaning.push_str(&format!(": {}", choices.join(", ")));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        meaning.push_str(&format!(" (default {})", defaults.join(", ")));
    }
    if let Some(variable) = argument.get_env() {
        meaning.push_str(&format!(" (environment `{}`)", variable.to_string_lossy()));
    }
    meaning.replace('|', "\\|")
}

fn about(command: &clap::Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|inner| inner.get_name() != "help")
}

fn leaves(command: &clap::Command, visit: &mut impl FnMut(&str, &clap::Command)) {
    for inner in shown(command) {
        if inner.has_subcommands() {
            leaves(inner, visit);
        } else {
            visit(inner.get_bin_name().unwrap_or_else(|| inner.get_name()), inner);
        }
    }
}
