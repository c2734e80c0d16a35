//! Pieces of documents: tables and sections, as HTML and as Markdown.

/// Longer text than this is broken into lines.
const LONG: usize = 24;

/// A table of text.
#[derive(Debug, Default, Clone)]
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(
        header: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        Self { header: header.map(str::to_owned).to_vec(), rows: rows.into_iter().map(Vec::from).collect() }
    }

    /// Writes it as HTML.
    pub(crate) fn html(&self, class: &str) -> String {
        let header: String = self.header.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
        let cells = |row: &Vec<String>| row.iter().map(|text| cell(text)).collect::<String>();
        let rows: String = self.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row))).collect();
        format!(
            "<div class=\"wide\"><table class=\"{class}\"><thead><tr>{header}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
        )
    }

    /// Writes it as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let rule: Vec<String> = self.header.iter().map(|_| "---".to_owned()).collect();
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            line(&cells)
        });
        let lines: Vec<String> = [line(&self.header), line(&rule)].into_iter().chain(rows).collect();
        lines.join("\n")
    }
}

/// Makes text harmless in HTML and SVG.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Writes a section of a page.
pub(crate) fn section(title: &str, content: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{content}</section>", escape(title))
}

/// Writes a paragraph.
pub(crate) fn text(words: &str) -> String {
    format!("<p class=\"text\">{}</p>\n", escape(words))
}

/// Writes a list.
pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{}</li>\n", escape(&item))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Words may be broken into lines, figures not.
fn cell(text: &str) -> String {
    let is_text = text.starts_with(char::is_alphabetic) && text.len() > LONG;
    let class = if is_text { " class=\"text\"" } else { "" };
    format!("<td{class}>{}</td>", escape(text))
}
