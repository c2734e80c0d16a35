//! Sections of a report, each made once and written for a page or as Markdown.

use crate::document::{TextTable, escape, list, section, text};

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
    /// HTML, for the page only.
    Html(String),
    /// Blocks shown on demand, below a summary line.
    Folded(&'static str, Vec<Self>),
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
        let blocks = self.blocks.iter().filter(|(medium, _)| *medium != Medium::Markdown);
        let content: String = blocks.map(|(_, block)| block.html()).collect();
        if content.is_empty() {
            return content;
        }
        let content = if self.is_folded { folded(" open", "Show or hide", &content) } else { content };
        let attributes = match (self.id.as_str(), self.is_alert) {
            (_, true) => " class=\"alert\"".to_owned(),
            ("", false) => String::new(),
            (id, false) => format!(" id=\"{id}\""),
        };
        section(&self.title, &content).replacen("<section>", &format!("<section{attributes}>"), 1)
    }

    /// Writes the section as Markdown; empty if it has only words.
    pub(crate) fn text(&self) -> String {
        let blocks =
            || self.blocks.iter().filter(|(medium, _)| *medium != Medium::Page).map(|(_, block)| block);
        let has_content =
            blocks().any(|block| !matches!(block, SectionBlock::Words(_)) && !block.text().is_empty());
        if !has_content {
            return String::new();
        }
        let written: Vec<String> = blocks().map(SectionBlock::text).filter(|text| !text.is_empty()).collect();
        format!("## {}\n\n{}\n", self.title, written.join("\n\n"))
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
            Self::Html(html) => html.clone(),
            Self::Folded(summary, blocks) => {
                folded("", summary, &blocks.iter().map(Self::html).collect::<String>())
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Heading(title) => format!("### {title}"),
            Self::Table(table, _) if table.rows.is_empty() => String::new(),
            Self::Table(table, _) => table.markdown(),
            Self::List(items) => items.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n"),
            Self::Command(command) => format!("```sh\n{command}\n```"),
            Self::Html(_) | Self::Folded(..) => String::new(),
        }
    }
}

fn folded(state: &str, summary: &str, content: &str) -> String {
    format!("<details{state}><summary>{summary}</summary>\n{content}</details>\n")
}
