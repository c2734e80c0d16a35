//! Conditions over topics: `'a' in topics && ('b' in topics || !('c' in topics))`.

const MAX_TOPICS: usize = 5;
const MAX_DEPTH: usize = 16;

/// A parsed condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FcmCondition {
    Topic(String),
    Not(Box<FcmCondition>),
    And(Box<FcmCondition>, Box<FcmCondition>),
    Or(Box<FcmCondition>, Box<FcmCondition>),
}

impl FcmCondition {
    /// Parses a condition of at most five topics; `None` if it is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parser = FcmConditionParser { rest: text, topics: 0 };
        let condition = parser.or(0)?;
        parser.rest.trim_start().is_empty().then_some(condition)
    }

    /// Evaluates it for something that is in certain topics.
    pub(crate) fn holds(&self, is_in: &impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Topic(topic) => is_in(topic),
            Self::Not(inner) => !inner.holds(is_in),
            Self::And(left, right) => left.holds(is_in) && right.holds(is_in),
            Self::Or(left, right) => left.holds(is_in) || right.holds(is_in),
        }
    }
}

struct FcmConditionParser<'a> {
    rest: &'a str,
    topics: usize,
}

impl FcmConditionParser<'_> {
    fn or(&mut self, depth: usize) -> Option<FcmCondition> {
        let mut left = self.and(depth)?;
        while self.take("||") {
            left = FcmCondition::Or(Box::new(left), Box::new(self.and(depth)?));
        }
        Some(left)
    }

    fn and(&mut self, depth: usize) -> Option<FcmCondition> {
        let mut left = self.unit(depth)?;
        while self.take("&&") {
            left = FcmCondition::And(Box::new(left), Box::new(self.unit(depth)?));
        }
        Some(left)
    }

    fn unit(&mut self, depth: usize) -> Option<FcmCondition> {
        // Each bracket and each negation is a call deeper: a hostile condition must not use up the stack.
        if depth > MAX_DEPTH {
            return None;
        }
        if self.take("!") {
            return Some(FcmCondition::Not(Box::new(self.unit(depth + 1)?)));
        }
        if self.take("(") {
            let inner = self.or(depth + 1)?;
            return self.take(")").then_some(inner);
        }
        self.topic()
    }

    fn topic(&mut self) -> Option<FcmCondition> {
        if !self.take("'") {
            return None;
        }
        let (topic, rest) = self.rest.split_once('\'')?;
        self.rest = rest;
        self.topics += 1;
        let valid = super::message::is_topic(topic) && self.topics <= MAX_TOPICS;
        let topic = topic.to_owned();
        (valid && self.take("in") && self.take("topics")).then_some(FcmCondition::Topic(topic))
    }

    fn take(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}
