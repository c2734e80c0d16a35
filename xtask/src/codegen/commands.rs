//! The pages of commands: one for each group of each program, and an index of them.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;

use super::{GeneratedText, output_of};

/// The folder of all pages.
pub(super) const FOLDER: &str = "docs/commands";

/// A program with pages of its own.
struct DocumentedProgram {
    /// Its file, beside the product's.
    file: &'static str,
    folder: &'static str,
    /// Number of words before a group.
    words: usize,
}

const PROGRAMS: [DocumentedProgram; 2] = [
    DocumentedProgram { file: "stentor", folder: FOLDER, words: 1 },
    DocumentedProgram { file: "stentor-lab", folder: "docs/commands/lab", words: 2 },
];

/// Generates the pages of each program by running it.
pub(super) fn texts(product: &Path) -> anyhow::Result<Vec<GeneratedText>> {
    let mut texts = Vec::new();
    for program in &PROGRAMS {
        let binary = product.with_file_name(format!("{}{}", program.file, std::env::consts::EXE_SUFFIX));
        let list = output_of(&binary, &["--json", "commands"])?;
        texts.push(program.page(&binary, "README", &["commands", "--index"])?);
        for group in groups(&list, program.words)? {
            texts.push(program.page(&binary, &group, &["commands", "--markdown", &group])?);
        }
    }
    Ok(texts)
}

impl DocumentedProgram {
    fn page(&self, binary: &Path, name: &str, arguments: &[&str]) -> anyhow::Result<GeneratedText> {
        let what = format!("the output of `{} {}`", self.file, arguments.join(" "));
        let path = format!("{}/{name}.md", self.folder);
        Ok(GeneratedText { path, generated: output_of(binary, arguments)?, what })
    }
}

/// Returns the word of each command after the first `words` words, each once.
fn groups(list: &str, words: usize) -> anyhow::Result<BTreeSet<String>> {
    let list: serde_json::Value = serde_json::from_str(list).context("the list of commands is not JSON")?;
    let commands = list["commands"].as_array().context("there is no list of commands")?;
    let group =
        |command: &serde_json::Value| command["command"].as_str()?.split(' ').nth(words).map(str::to_owned);
    Ok(commands.iter().filter_map(group).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_the_word_behind_the_program() {
        let list = r#"{"commands":[{"command":"stentor app create"},{"command":"stentor app list"},{"command":"stentor serve"}]}"#;
        let found: Vec<String> = groups(list, 1).unwrap().into_iter().collect();
        assert_eq!(found, ["app", "serve"]);
        assert!(groups("{}", 1).is_err());
    }
}
