//! Pieces of documents: tables and sections, as HTML and as Markdown.

/// Length in bytes above which text may be wrapped.
const LONG: usize = 24;

/// A table of text.
#[derive(Debug, Default, Clone)]
pub(crate) struct TextTable {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// A column: its heading and the function that writes its cells.
pub(crate) type TextColumn<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

impl TextTable {
    pub(crate) fn new<const N: usize>(
        header: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        Self { header: header.map(str::to_owned).to_vec(), rows: rows.into_iter().map(Vec::from).collect() }
    }

    /// Builds a table with one row per item and the given columns.
    pub(crate) fn of<'a, T: 'a>(
        things: impl IntoIterator<Item = &'a T>,
        columns: &[TextColumn<'_, T>],
    ) -> Self {
        let header = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let row = |one: &T| columns.iter().map(|(_, write)| write(one)).collect();
        Self { header, rows: things.into_iter().map(row).collect() }
    }

    /// Writes it as HTML.
    pub(crate) fn html(&self, class: &str) -> String {
        let are_words: Vec<bool> = (0..self.header.len()).map(|column| self.is_of_words(column)).collect();
        let of_words = |name: &String, words: &bool| {
            let class = if *words { " class=\"word\"" } else { "" };
            format!("<th{class}>{}</th>", escape(name))
        };
        let header: String =
            self.header.iter().zip(&are_words).map(|(name, words)| of_words(name, words)).collect();
        let cells = |row: &Vec<String>| {
            row.iter().zip(&are_words).map(|(text, words)| cell(text, *words)).collect::<String>()
        };
        let rows: String = self.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row))).collect();
        format!(
            "<div class=\"wide\"><table class=\"{class}\"><thead><tr>{header}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
        )
    }

    /// Returns true if a column holds mostly words, which are aligned left; figures are aligned right.
    fn is_of_words(&self, column: usize) -> bool {
        let cells = || self.rows.iter().filter_map(|row| row.get(column)).filter(|cell| *cell != "–");
        let words = cells().filter(|cell| cell.contains(char::is_alphabetic)).count();
        2 * words > cells().count()
    }

    /// Writes it as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let rule: Vec<String> = self.header.iter().map(|_| "---".to_owned()).collect();
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(|cell| without_tags(&cell.replace('|', "\\|"))).collect();
            line(&cells)
        });
        let lines: Vec<String> = [line(&self.header), line(&rule)].into_iter().chain(rows).collect();
        lines.join("\n")
    }
}

/// Escapes what Markdown would take for tags of HTML.
pub(crate) fn without_tags(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let begins_tag = letter == '<'
            && letters.peek().is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(*next));
        escaped.push_str(if begins_tag { "\\" } else { "" });
        escaped.push(letter);
    }
    escaped
}

/// Escapes text for HTML and SVG.
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

/// Writes a table cell; words may be wrapped, figures may not.
fn cell(text: &str, is_of_words: bool) -> String {
    let is_text = text.starts_with(char::is_alphabetic) && text.len() > LONG;
    let class = match (is_text, is_of_words) {
        (true, _) => " class=\"text\"",
        (false, true) => " class=\"word\"",
        (false, false) => "",
    };
    format!("<td{class}>{}</td>", escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_in_a_cell_stays_text_in_markdown() {
        let cell = "it gets <detail>1 < 2</detail>".to_owned();
        let text = TextTable::new(["answer"], [[cell]]).markdown();
        assert!(text.ends_with("| it gets \\<detail>1 < 2\\</detail> |"), "{text}");
    }

    #[test]
    fn words_begin_at_the_left_and_figures_end_at_the_right_in_the_whole_column() {
        let row = |cell: &str, time: &str| [cell.to_owned(), time.to_owned()];
        let table = TextTable::new(
            ["cell", "ms"],
            [row("700MHz", "12"), row("SOAP", "13 out of memory"), row("–", "14")],
        );
        let html = table.html("");
        assert!(html.contains("<th class=\"word\">cell</th><th>ms</th>"), "{html}");
        assert!(html.contains("<td class=\"word\">700MHz</td><td>12</td>"), "{html}");
        assert!(html.contains("<td class=\"word\">–</td><td>14</td>"), "{html}");
    }
}
