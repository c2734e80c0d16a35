//! `cargo xtask prose`: how plain the English of comments is, by package. It measures, and no figure of it fails.

mod comments;

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde_json::{Value, json};

use self::comments::{Comment, comments};
use crate::workspace::Workspace;

/// Beginnings of documentation that name no thing and no action.
const CLAUSES: [&str; 11] =
    ["What", "Whatever", "Who", "Whoever", "Whose", "How", "Where", "Wherever", "Whether", "Which", "Why"];
/// Words that stand for a thing or an actor without a name. Well-read Rust projects have 0 to 1 of each in 1,000 words.
const MARKS: [(&str, &[&str]); 4] = [
    ("what", &["what", "whatever"]),
    ("who", &["who", "whoever", "whom", "whose", "nobody"]),
    ("told", &["told", "tell", "tells", "telling"]),
    ("ask", &["ask", "asks", "asked", "asking"]),
];

/// Counts of one package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProseCounts {
    docs: usize,
    clauses: usize,
    words: usize,
    marks: [usize; MARKS.len()],
}

/// Prints the ratios of each package and of all, as JSON or as a table.
pub(crate) fn run(workspace: &Workspace, is_json: bool) -> anyhow::Result<bool> {
    let mut packages: BTreeMap<String, ProseCounts> = BTreeMap::new();
    for source in workspace.sources()? {
        let counts = packages.entry(source.package).or_default();
        comments(&source.text)?.iter().for_each(|comment| counts.add(comment));
    }
    let mut all = ProseCounts::default();
    packages.values().for_each(|counts| all += *counts);
    packages.insert("all".to_owned(), all);
    print!("{}", if is_json { format!("{}\n", as_json(&packages)) } else { as_table(&packages) });
    Ok(true)
}

impl ProseCounts {
    fn add(&mut self, comment: &Comment) {
        let is_clause = CLAUSES.contains(&words(&comment.text).next().unwrap_or_default());
        self.docs += usize::from(comment.is_doc);
        self.clauses += usize::from(comment.is_doc && is_clause);
        for word in words(&comment.text) {
            self.words += 1;
            let word = word.to_lowercase();
            for (count, (_, forms)) in self.marks.iter_mut().zip(MARKS) {
                *count += usize::from(forms.contains(&word.as_str()));
            }
        }
    }

    /// Returns the share of documentation that begins with a clause, in percent.
    fn clauses_percent(&self) -> f64 {
        100.0 * self.clauses as f64 / self.docs.max(1) as f64
    }

    /// Returns the marks in 1,000 words.
    fn per_thousand(&self) -> [f64; MARKS.len()] {
        self.marks.map(|count| 1_000.0 * count as f64 / self.words.max(1) as f64)
    }
}

impl AddAssign for ProseCounts {
    fn add_assign(&mut self, other: Self) {
        self.docs += other.docs;
        self.clauses += other.clauses;
        self.words += other.words;
        for (mine, more) in self.marks.iter_mut().zip(other.marks) {
            *mine += more;
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphabetic() && letter != '\'').filter(|word| !word.is_empty())
}

fn as_json(packages: &BTreeMap<String, ProseCounts>) -> Value {
    let package = |counts: &ProseCounts| {
        let marks: serde_json::Map<String, Value> = MARKS
            .iter()
            .zip(counts.per_thousand())
            .map(|((name, _), ratio)| ((*name).to_owned(), ratio.into()))
            .collect();
        json!({
            "docs": counts.docs,
            "docs_beginning_with_a_clause_percent": counts.clauses_percent(),
            "words": counts.words,
            "per_thousand_words": marks,
        })
    };
    packages
        .iter()
        .map(|(name, counts)| (name.clone(), package(counts)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn as_table(packages: &BTreeMap<String, ProseCounts>) -> String {
    let marks: String = MARKS.iter().map(|(name, _)| format!("{name:>7}")).collect();
    let mut table = format!("{:<24}{:>7}{:>9}{:>9}{marks}\n", "package", "docs", "clauses", "words");
    for (name, counts) in packages {
        let ratios: String = counts.per_thousand().iter().map(|ratio| format!("{ratio:>7.2}")).collect();
        let percent = counts.clauses_percent();
        table += &format!("{name:<24}{:>7}{percent:>8.1}%{:>9}{ratios}\n", counts.docs, counts.words);
    }
    table
        + "clauses: documentation that begins with What, Who, How, Where, …; the words: in 1,000 words of comments\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> ProseCounts {
        let mut counts = ProseCounts::default();
        comments(text).expect("it parses").iter().for_each(|comment| counts.add(comment));
        counts
    }

    #[test]
    fn a_clause_counts_at_the_beginning_of_documentation_alone() {
        let text = "/// What is sent.\nstruct A;\n/// The payload.\nstruct B;\n// What comes next is code.\nstruct C;\n";
        let counts = counts(text);
        assert_eq!((counts.docs, counts.clauses, counts.marks[0]), (2, 1, 2));
    }

    #[test]
    fn lines_of_one_comment_are_one_text_and_words_in_code_count_nothing() {
        let text =
            "/// The request,\n/// told to nobody.\nfn tell(what: &str) -> &str { \"// who asked\" }\n";
        let counts = counts(text);
        assert_eq!((counts.docs, counts.words, counts.marks), (1, 5, [0, 1, 1, 0]));
    }
}
