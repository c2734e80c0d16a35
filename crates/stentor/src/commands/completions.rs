//! `stentor completions`: shell completions for the commands.

use clap::Args;
use clap_complete::Shell;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor completions bash > /etc/bash_completion.d/stentor
  stentor completions zsh > \"${fpath[1]}/_stentor\"
  stentor completions fish > ~/.config/fish/completions/stentor.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints them.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::tree(), "stentor", &mut script);
        crate::output::line(String::from_utf8_lossy(&script).trim_end())
    }
}
