//! Sections of a report, each made once and written for a page or as Markdown.

use crate::claims::ClaimVerdict;
use crate::document::{TextTable, escape, list, section, text, without_tags};

/// The summary line of a folded section.
const SHOW: &str = "Show or hide";

/// A section.
#[derive(Debug, Default)]
pub(crate) struct Section {
    id: String,
    title: String,
    is_alert: bool,
    is_folded: bool,
    blocks: Vec<(Medium, SectionBlock)>,
}

/// The output that includes a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    Both,
    Page,
    Markdown,
}

/// A block of a section.
#[derive(Debug)]
pub(crate) enum SectionBlock {
    /// A paragraph.
    Words(String),
    /// A heading within the section.
    Heading(String),
    /// A table, with its class on a page.
    Table(TextTable, &'static str),
    /// A list.
    List(Vec<String>),
    /// Commands to copy.
    Command(String),
    /// A drawing: within a page, or in Markdown as a file with words for it; without a file it is left out there.
    Figure { svg: String, file: String, alt: String },
    /// HTML, for the page only.
    Html(String),
    /// Verdicts, one per line.
    Verdicts(Vec<VerdictLine>),
    /// Blocks shown on demand, below a summary line.
    Folded(String, Vec<Self>),
    /// A section within this one, shown on demand below its title.
    Inner(Section),
}

/// A verdict in one line.
#[derive(Debug)]
pub(crate) struct VerdictLine {
    /// The figures that it is by, with their setting.
    pub(crate) by: String,
    /// The verdict.
    pub(crate) verdict: ClaimVerdict,
    /// Its ground, with the names of both sides.
    pub(crate) ground: String,
}

impl Section {
    pub(crate) fn new(id: &str, title: &str) -> Self {
        Self { id: id.to_owned(), title: title.to_owned(), ..Self::default() }
    }

    /// Makes a section of words and a table.
    pub(crate) fn tabled(id: &str, title: &str, words: &str, table: TextTable, class: &'static str) -> Self {
        let words = if table.rows.is_empty() { String::new() } else { words.to_owned() };
        Self::new(id, title).page(SectionBlock::Words(words)).both(SectionBlock::Table(table, class))
    }

    pub(crate) fn with(mut self, medium: Medium, block: SectionBlock) -> Self {
        self.blocks.push((medium, block));
        self
    }

    pub(crate) fn both(self, block: SectionBlock) -> Self {
        self.with(Medium::Both, block)
    }

    pub(crate) fn page(self, block: SectionBlock) -> Self {
        self.with(Medium::Page, block)
    }

    pub(crate) fn markdown(self, block: SectionBlock) -> Self {
        self.with(Medium::Markdown, block)
    }

    pub(crate) fn alert(self) -> Self {
        Self { is_alert: true, ..self }
    }

    pub(crate) fn folded(self) -> Self {
        Self { is_folded: true, ..self }
    }

    /// Writes the section as HTML; empty without content.
    pub(crate) fn html(&self) -> String {
        let content = self.html_content();
        if content.is_empty() {
            return content;
        }
        let content = if self.is_folded { folded(SHOW, &content) } else { content };
        let attributes = match (self.id.as_str(), self.is_alert) {
            (_, true) => " class=\"alert\"".to_owned(),
            ("", false) => String::new(),
            (id, false) => format!(" id=\"{id}\""),
        };
        section(&self.title, &content).replacen("<section>", &format!("<section{attributes}>"), 1)
    }

    /// Writes the section as Markdown; empty if it has only words.
    pub(crate) fn text(&self) -> String {
        let content = self.text_content();
        if content.is_empty() {
            return content;
        }
        let content = if self.is_folded { folded_text(SHOW, &content) } else { content };
        format!("## {}\n\n{content}\n", self.title)
    }

    fn html_content(&self) -> String {
        let blocks = self.blocks.iter().filter(|(medium, _)| *medium != Medium::Markdown);
        blocks.map(|(_, block)| block.html()).collect()
    }

    fn text_content(&self) -> String {
        let blocks =
            || self.blocks.iter().filter(|(medium, _)| *medium != Medium::Page).map(|(_, block)| block);
        let has_content =
            blocks().any(|block| !matches!(block, SectionBlock::Words(_)) && !block.text().is_empty());
        if has_content { texts(blocks()) } else { String::new() }
    }
}

impl SectionBlock {
    fn html(&self) -> String {
        match self {
            Self::Words(words) if words.is_empty() => String::new(),
            Self::Words(words) => text(words),
            Self::Heading(title) => format!("<h3>{}</h3>\n", escape(title)),
            Self::Table(table, _) if table.rows.is_empty() => String::new(),
            Self::Table(table, class) => table.html(class),
            Self::List(items) if items.is_empty() => String::new(),
            Self::List(items) => list(items.iter().cloned()),
            Self::Command(command) => format!("<pre>{}</pre>\n", escape(command)),
            Self::Figure { svg, .. } => format!("<div class=\"figure\">{svg}</div>\n"),
            Self::Html(html) => html.clone(),
            Self::Folded(summary, blocks) => {
                folded(summary, &blocks.iter().map(Self::html).collect::<String>())
            }
            Self::Inner(section) => folded(&section.title, &section.html_content()),
            Self::Verdicts(lines) => {
                let lines: String = lines.iter().map(VerdictLine::html).collect();
                format!("<ul class=\"verdicts\">\n{lines}</ul>\n")
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Words(words) => without_tags(words),
            Self::Heading(title) => format!("### {}", without_tags(title)),
            Self::Table(table, _) if table.rows.is_empty() => String::new(),
            Self::Table(table, _) => table.markdown(),
            Self::List(items) => {
                items.iter().map(|item| format!("- {}", without_tags(item))).collect::<Vec<_>>().join("\n")
            }
            Self::Command(command) => format!("```sh\n{command}\n```"),
            Self::Verdicts(lines) => lines.iter().map(VerdictLine::text).collect::<Vec<_>>().join("\n"),
            Self::Folded(summary, blocks) => folded_text(summary, &texts(blocks.iter())),
            Self::Inner(section) => folded_text(&section.title, &section.text_content()),
            Self::Figure { file, .. } if file.is_empty() => String::new(),
            Self::Figure { file, alt, .. } => format!("![{}]({file})", without_tags(alt)),
            Self::Html(_) => String::new(),
        }
    }
}

impl VerdictLine {
    fn html(&self) -> String {
        let Self { by, verdict, ground } = self;
        format!("<li>{}: {} {}</li>\n", escape(by), badge(*verdict), escape(ground))
    }

    fn text(&self) -> String {
        let Self { by, verdict, ground } = self;
        format!("- {by}: **{}**: {}", verdict.word(), without_tags(ground))
    }
}

fn badge(verdict: ClaimVerdict) -> String {
    let (class, sign) = match verdict {
        ClaimVerdict::Holds => ("yes", "✓"),
        ClaimVerdict::DoesNotHold => ("no", "✗"),
        ClaimVerdict::Undecided => ("open", "?"),
        ClaimVerdict::SetByExperiment => ("set", "="),
        ClaimVerdict::NotTestable => ("none", "–"),
    };
    format!("<span class=\"badge {class}\">{sign} {}</span>", verdict.word())
}

/// Writes blocks as Markdown, with an empty line between them.
fn texts<'a>(blocks: impl Iterator<Item = &'a SectionBlock>) -> String {
    blocks.map(SectionBlock::text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Writes content that is shown on demand; empty without content.
fn folded(summary: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>\n{content}</details>\n", escape(summary))
}

/// Writes content that is shown on demand, as a block of HTML around Markdown, which needs empty lines.
fn folded_text(summary: &str, content: &str) -> String {
    let content = if content.is_empty() { String::new() } else { format!("\n{content}\n\n") };
    folded(summary, &content).trim_end().to_owned()
}
