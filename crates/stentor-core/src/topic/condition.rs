//! The condition language: `||` binds weakest, then `&&`, then `!`; parentheses group.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::limits::{CONDITION_DEPTH_MAX_LEVELS, CONDITION_MAX_BYTES, CONDITION_TOPICS_MAX_COUNT};
use crate::name::TopicName;

/// A parsed condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// The device is subscribed to the topic.
    In(TopicName),
    /// The inner expression does not hold.
    Not(Box<Expr>),
    /// All parts hold.
    All(Vec<Expr>),
    /// At least one part holds.
    Any(Vec<Expr>),
}

/// A condition with its text; equal texts are equal conditions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    text: String,
    expr: Expr,
}

impl Condition {
    /// Parses the text; the error names the byte at which parsing failed.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text.len() > CONDITION_MAX_BYTES {
            return Err(Invalid::new("condition", format!("at most {CONDITION_MAX_BYTES} bytes")));
        }
        let mut parser = Parser { text, at: 0, topics: 0 };
        let expr = parser.any(0)?;
        parser.skip_space();
        if parser.at != text.len() {
            return Err(parser.wrong("`&&`, `||` or the end"));
        }
        Ok(Self { text: text.to_owned(), expr })
    }

    /// Returns the parsed form.
    #[must_use]
    pub const fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Returns the original text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Lists the topics of the condition, without repeats.
    #[must_use]
    pub fn topics(&self) -> Vec<&TopicName> {
        let mut found = Vec::new();
        self.expr.collect(&mut found);
        found.sort();
        found.dedup();
        found
    }
}

impl Expr {
    /// Returns true if the condition holds for a device; `has` returns true for the device's topics.
    pub fn holds(&self, has: &impl Fn(&TopicName) -> bool) -> bool {
        match self {
            Self::In(topic) => has(topic),
            Self::Not(inner) => !inner.holds(has),
            Self::All(parts) => parts.iter().all(|part| part.holds(has)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(has)),
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a TopicName>) {
        match self {
            Self::In(topic) => found.push(topic),
            Self::Not(inner) => inner.collect(found),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.collect(found)),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, word) = match self {
            Self::In(topic) => return write!(f, "'{topic}' in topics"),
            Self::Not(inner) => return write!(f, "!({inner})"),
            Self::All(parts) => (parts, " && "),
            Self::Any(parts) => (parts, " || "),
        };
        for (index, part) in parts.iter().enumerate() {
            let lead = if index == 0 { "" } else { word };
            write!(f, "{lead}({part})")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Condition {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::parse(&text)
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.text
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    topics: usize,
}

impl<'a> Parser<'a> {
    fn any(&mut self, depth: usize) -> Result<Expr, Invalid> {
        let mut parts = vec![self.all(depth)?];
        while self.eat("||") {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, Expr::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Expr, Invalid> {
        let mut parts = vec![self.term(depth)?];
        while self.eat("&&") {
            parts.push(self.term(depth)?);
        }
        Ok(one_or(parts, Expr::All))
    }

    fn term(&mut self, depth: usize) -> Result<Expr, Invalid> {
        // Before anything else is parsed: the depth of the text is that of the recursion, and callers choose it.
        if depth == CONDITION_DEPTH_MAX_LEVELS {
            return Err(Invalid::new(
                "condition",
                format!("nested deeper than {CONDITION_DEPTH_MAX_LEVELS} levels"),
            ));
        }
        if self.eat("!") {
            return Ok(Expr::Not(Box::new(self.term(depth + 1)?)));
        }
        if self.eat("(") {
            let inner = self.any(depth + 1)?;
            return if self.eat(")") { Ok(inner) } else { Err(self.wrong("`)`")) };
        }
        self.membership()
    }

    fn membership(&mut self) -> Result<Expr, Invalid> {
        let topic = self.quoted()?;
        if !(self.eat("in") && self.eat("topics")) {
            return Err(self.wrong("`in topics`"));
        }
        self.topics += 1;
        if self.topics > CONDITION_TOPICS_MAX_COUNT {
            return Err(Invalid::new(
                "condition",
                format!("names more than {CONDITION_TOPICS_MAX_COUNT} topics"),
            ));
        }
        Ok(Expr::In(topic))
    }

    fn quoted(&mut self) -> Result<TopicName, Invalid> {
        let Some(quote) = ["'", "\""].into_iter().find(|quote| self.eat(quote)) else {
            return Err(self.wrong("a topic in quotes, `!` or `(`"));
        };
        let rest = self.rest();
        let Some(end) = rest.find(quote) else {
            return Err(self.wrong("a closing quote"));
        };
        self.at += end + 1;
        TopicName::new(&rest[..end]).map_err(|invalid| Invalid::new("condition", invalid.problem))
    }

    fn eat(&mut self, word: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, expected: &str) -> Invalid {
        Invalid::new("condition", format!("expected {expected} at byte {}", self.at))
    }
}

fn one_or(mut parts: Vec<Expr>, many: fn(Vec<Expr>) -> Expr) -> Expr {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            many(parts)
        }
    }
}
