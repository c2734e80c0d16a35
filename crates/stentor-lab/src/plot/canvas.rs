//! The canvas of a plot.

use super::{BACKGROUND, INK, PAPER};
use crate::document::escape;
use std::collections::BTreeSet;

/// Average width of a letter relative to the font size.
const LETTER: f64 = 0.56;

/// The style of a series, which differs from others in colour and in shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeriesStyle {
    pub(crate) color: &'static str,
    shape: MarkerShape,
    dash: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum MarkerShape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Ring,
    Plus,
    Bar,
}

const LOOKS: [SeriesStyle; 8] = [
    SeriesStyle { color: "var(--c1,#2b6cb0)", shape: MarkerShape::Circle, dash: "" },
    SeriesStyle { color: "var(--c2,#c05621)", shape: MarkerShape::Square, dash: "7 3" },
    SeriesStyle { color: "var(--c3,#2f855a)", shape: MarkerShape::Triangle, dash: "2 3" },
    SeriesStyle { color: "var(--c4,#805ad5)", shape: MarkerShape::Diamond, dash: "9 3 2 3" },
    SeriesStyle { color: "var(--c5,#b83280)", shape: MarkerShape::Cross, dash: "4 2" },
    SeriesStyle { color: "var(--c6,#0f766e)", shape: MarkerShape::Ring, dash: "12 3" },
    SeriesStyle { color: "var(--c7,#975a16)", shape: MarkerShape::Plus, dash: "1 2" },
    SeriesStyle { color: "var(--c8,#4a5568)", shape: MarkerShape::Bar, dash: "6 2 1 2 1 2" },
];

impl SeriesStyle {
    /// Returns the style of the series at an index; after eight the colours repeat with other shapes.
    pub(crate) const fn of(place: usize) -> Self {
        let Self { shape, dash, .. } = LOOKS[(place + place / LOOKS.len()) % LOOKS.len()];
        Self { color: LOOKS[place % LOOKS.len()].color, shape, dash }
    }

    /// Returns the same shape in the colour of published values.
    pub(crate) const fn published(self) -> Self {
        Self { color: PAPER, ..self }
    }

    /// Returns each name with the style of its index.
    pub(crate) fn each<'a>(names: &[&'a str]) -> Vec<(&'a str, Self)> {
        names.iter().enumerate().map(|(place, name)| (*name, Self::of(place))).collect()
    }
}

/// A canvas.
#[derive(Debug)]
pub(crate) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

impl Canvas {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), color: &str, width: f64) {
        self.add(&format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{color}\" stroke-width=\"{width}\"/>"
        ));
    }

    pub(crate) fn rectangle(&mut self, (x, y): (f64, f64), size: (f64, f64), fill: &str, stroke: &str) {
        let (width, height) = (size.0.max(0.0), size.1.max(0.0));
        self.add(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\" stroke=\"{stroke}\"/>"
        ));
    }

    /// Draws a line through points, in a series' colour and pattern.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], look: SeriesStyle) {
        let dash =
            if look.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", look.dash) };
        self.add(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{dash}/>",
            joined(points),
            look.color
        ));
    }

    /// Fills an area in a series' colour, translucently.
    pub(crate) fn area(&mut self, points: &[(f64, f64)], look: SeriesStyle) {
        self.add(&format!(
            "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.16\" stroke=\"none\"/>",
            joined(points),
            look.color
        ));
    }

    /// Draws a series' mark.
    pub(crate) fn mark(&mut self, (x, y): (f64, f64), look: SeriesStyle) {
        let color = look.color;
        let path = |d: String| format!("<path d=\"{d}\" fill=\"{color}\"/>");
        let stroke =
            |d: String| format!("<path d=\"{d}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2.2\"/>");
        let text = match look.shape {
            MarkerShape::Circle => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{color}\"/>"),
            MarkerShape::Ring => format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\" fill=\"{BACKGROUND}\" stroke=\"{color}\" stroke-width=\"2\"/>"
            ),
            MarkerShape::Square => path(format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5)),
            MarkerShape::Triangle => path(format!("M{x:.1} {:.1}l4.8 8.4h-9.6z", y - 5.2)),
            MarkerShape::Diamond => path(format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0)),
            MarkerShape::Cross => stroke(format!("M{:.1} {:.1}l7 7m0 -7l-7 7", x - 3.5, y - 3.5)),
            MarkerShape::Plus => stroke(format!("M{x:.1} {:.1}v9m-4.5 -4.5h9", y - 4.5)),
            MarkerShape::Bar => path(format!("M{:.1} {:.1}h10v4h-10z", x - 5.0, y - 2.0)),
        };
        self.add(&text);
    }

    /// Draws an interval as a line with ends.
    pub(crate) fn whiskers(&mut self, from: (f64, f64), to: (f64, f64), color: &str) {
        let is_flat = (from.1 - to.1).abs() < f64::EPSILON;
        let ends = |(x, y): (f64, f64)| {
            if is_flat { format!("M{x:.1} {:.1}v8", y - 4.0) } else { format!("M{:.1} {y:.1}h8", x - 4.0) }
        };
        let ((x1, y1), (x2, y2), ends) = (from, to, ends(from) + &ends(to));
        self.add(&format!(
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}{ends}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.4\"/>"
        ));
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: &str, color: &str, words: &str) {
        self.words((x, y), anchor, color, "", words);
    }

    pub(crate) fn heading(&mut self, at: (f64, f64), words: &str) {
        self.words(at, "start", INK, " font-weight=\"600\"", words);
    }

    fn words(&mut self, (x, y): (f64, f64), anchor: &str, color: &str, more: &str, words: &str) {
        let words = escape(words);
        self.add(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\"{more}>{words}</text>"
        ));
    }

    /// Writes the names of series side by side, with line breaks; returns the height of the legend.
    pub(crate) fn legend(&mut self, y: f64, names: &[(&str, SeriesStyle)]) -> f64 {
        let (mut x, mut row) = (8.0, 0.0);
        for (name, look) in names {
            let width = 32.0 + width_of(name);
            if x + width > self.width && x > 8.0 {
                (x, row) = (8.0, row + 20.0);
            }
            self.mark((x, y + row), *look);
            self.text((x + 11.0, y + row + 4.0), "start", INK, name);
            x += width;
        }
        row + 20.0
    }

    /// Stamps the kind of figures on the plot.
    pub(crate) fn stamp(&mut self, (right, y): (f64, f64), words: &str) {
        let width = width_of(words) + 16.0;
        let (left, top) = (right - width, y - 14.0);
        self.add(&format!(
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"20\" rx=\"10\" fill=\"none\" stroke=\"{INK}\"/>"
        ));
        self.text((right - 8.0, y), "end", INK, words);
    }

    /// Ends the plot; screen readers read the title and the description.
    pub(crate) fn finish(self, title: &str, description: &str) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             font-family=\"system-ui,-apple-system,'Segoe UI',sans-serif\" font-size=\"12.5\">\n<title>{}</title>\n\
             <desc>{}</desc>\n{body}</svg>\n",
            escape(title),
            escape(description)
        )
    }
}

/// Returns the approximate width of text in the plot's font.
pub(crate) fn width_of(words: &str) -> f64 {
    12.5 * LETTER * words.chars().count() as f64
}

/// The colours of dark mode, by variable.
const DARK: [(&str, &str); 13] = [
    ("ink", "#e6ebf2"),
    ("faint", "#a3afc0"),
    ("grid", "#334155"),
    ("ground", "#17213a"),
    ("published", "#94a3b8"),
    ("c1", "#7db7f0"),
    ("c2", "#f6ad55"),
    ("c3", "#68d391"),
    ("c4", "#b794f4"),
    ("c5", "#f687b3"),
    ("c6", "#5eead4"),
    ("c7", "#d9a441"),
    ("c8", "#cbd5e0"),
];

/// Returns the variables of dark mode as a style of a page.
pub(crate) fn dark_variables() -> String {
    DARK.map(|(name, color)| format!("--{name}:{color}")).join(";")
}

/// Makes a plot independent of a page: variables become colours for paper, and a style sets those of dark mode where it is understood.
pub(crate) fn standalone(svg: &str) -> String {
    let mut text = String::with_capacity(svg.len());
    let (mut rest, mut dark) = (svg, BTreeSet::from([dark_rule("ground", "#ffffff")]));
    while let Some(start) = rest.find("var(--") {
        let (before, variable) = rest.split_at(start);
        let (Some(comma), Some(end)) = (variable.find(','), variable.find(')')) else { break };
        let color = &variable[comma + 1..end];
        dark.insert(dark_rule(&variable["var(--".len()..comma], color));
        text.push_str(before);
        text.push_str(color);
        rest = &variable[end + 1..];
    }
    text.push_str(rest);
    let dark: String = dark.into_iter().collect();
    let above = format!(
        "</desc>\n<style>@media(prefers-color-scheme:dark){{{dark}}}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    text.replacen("</desc>\n", &above, 1)
}

/// Returns the rule that replaces a colour in dark mode; empty for a variable without one.
fn dark_rule(name: &str, color: &str) -> String {
    let found = DARK.iter().find(|(variable, _)| *variable == name);
    found.map_or_else(String::new, |(_, dark)| {
        format!("[fill=\"{color}\"]{{fill:{dark}}}[stroke=\"{color}\"]{{stroke:{dark}}}")
    })
}

fn joined(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}
