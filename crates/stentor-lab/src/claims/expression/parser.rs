//! The parser of claims: recursive descent over characters.

use super::{
    Aggregate, ArithmeticOperator, Binding, ClaimExpression, Comparator, Filter, Selector, SyntaxError, Term,
};

/// Comparison operators; the longer ones come first.
const COMPARISONS: [Comparator; 6] = [
    Comparator::LessOrEqual,
    Comparator::GreaterOrEqual,
    Comparator::Equal,
    Comparator::NotEqual,
    Comparator::Less,
    Comparator::Greater,
];
const AGGREGATES: [(&str, Aggregate); 5] = [
    ("mean(", Aggregate::Mean),
    ("min(", Aggregate::Min),
    ("max(", Aggregate::Max),
    ("sum(", Aggregate::Sum),
    ("count(", Aggregate::Count),
];
/// Maximum depth of nested terms. Claims come from our own files, but a typing error must not exhaust the stack.
const DEPTH_MAX: usize = 32;

/// The text with the position of the parser.
pub(super) struct ClaimParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

type ParseResult<T> = Result<T, SyntaxError>;

impl<'a> ClaimParser<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// Parses the whole text as a claim.
    pub(super) fn claim(mut self) -> ParseResult<ClaimExpression> {
        let claim = self.conjunction()?;
        self.end(claim)
    }

    /// Parses the whole text as a term.
    pub(super) fn whole_term(mut self) -> ParseResult<Term> {
        let term = self.sum()?;
        self.end(term)
    }

    /// Parses the whole text as bindings, separated by commas.
    pub(super) fn bindings(mut self) -> ParseResult<Vec<Binding>> {
        if self.rest().is_empty() {
            return Ok(Vec::new());
        }
        let bindings = self.some_bindings()?;
        self.end(bindings)
    }

    fn end<T>(&mut self, read: T) -> ParseResult<T> {
        if self.rest().is_empty() { Ok(read) } else { Err(self.wanted("the end")) }
    }

    fn conjunction(&mut self) -> ParseResult<ClaimExpression> {
        let mut parts = vec![self.part()?];
        while self.word("and") {
            parts.push(self.part()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { ClaimExpression::And(parts) })
    }

    fn part(&mut self) -> ParseResult<ClaimExpression> {
        if !self.word("for all") {
            return self.chain();
        }
        let bindings = self.some_bindings()?;
        self.expect(":", "a colon")?;
        self.deeper()?;
        let claim = self.conjunction()?;
        self.depth -= 1;
        Ok(ClaimExpression::ForAll(bindings, Box::new(claim)))
    }

    fn some_bindings(&mut self) -> ParseResult<Vec<Binding>> {
        let mut bindings = vec![self.binding()?];
        while self.sign(",") {
            bindings.push(self.binding()?);
        }
        Ok(bindings)
    }

    fn binding(&mut self) -> ParseResult<Binding> {
        let marker = if self.sign("$") { "$" } else { "" };
        let name = format!("{marker}{}", self.name()?);
        if !self.word("in") {
            return Err(self.wanted("`in`"));
        }
        Ok(Binding { name, values: self.values(&[',', ':'])? })
    }

    fn chain(&mut self) -> ParseResult<ClaimExpression> {
        let first = self.sum()?;
        let mut links = Vec::new();
        while let Some(comparison) = self.comparison() {
            links.push((comparison, self.sum()?));
        }
        if links.is_empty() {
            Err(self.wanted("a comparison"))
        } else {
            Ok(ClaimExpression::Chain(first, links))
        }
    }

    fn comparison(&mut self) -> Option<Comparator> {
        COMPARISONS.into_iter().find(|comparison| self.sign(comparison.sign()))
    }

    fn sum(&mut self) -> ParseResult<Term> {
        self.operations(&[("+", ArithmeticOperator::Add), ("-", ArithmeticOperator::Subtract)], Self::product)
    }

    fn product(&mut self) -> ParseResult<Term> {
        self.operations(
            &[("*", ArithmeticOperator::Multiply), ("/", ArithmeticOperator::Divide)],
            Self::primary,
        )
    }

    fn operations(
        &mut self,
        signs: &[(&str, ArithmeticOperator)],
        next: fn(&mut Self) -> ParseResult<Term>,
    ) -> ParseResult<Term> {
        let mut left = next(self)?;
        while let Some((_, operation)) = signs.iter().find(|(sign, _)| self.sign(sign)) {
            left = Term::Arithmetic(*operation, Box::new(left), Box::new(next(self)?));
        }
        Ok(left)
    }

    fn primary(&mut self) -> ParseResult<Term> {
        self.deeper()?;
        let term = self.single()?;
        self.depth -= 1;
        Ok(term)
    }

    fn single(&mut self) -> ParseResult<Term> {
        if self.sign("(") {
            let inner = self.sum()?;
            return self.closed(inner);
        }
        if self.sign("abs(") {
            let inner = self.sum()?;
            return self.closed(Term::Abs(Box::new(inner)));
        }
        if self.sign("$") {
            return Ok(Term::Variable(self.name()?));
        }
        if let Some((_, aggregate)) = AGGREGATES.iter().find(|(name, _)| self.sign(name)) {
            return self.aggregate(*aggregate);
        }
        if self.rest().starts_with(|first: char| first.is_ascii_digit()) {
            return self.number();
        }
        let name =
            if self.rest().starts_with('\'') { self.quoted()? } else { self.name()?.replace('_', " ") };
        if self.sign("[") { self.selector(name) } else { Ok(Term::Word(name)) }
    }

    fn aggregate(&mut self, aggregate: Aggregate) -> ParseResult<Term> {
        let mut terms = vec![self.sum()?];
        while self.sign(",") {
            terms.push(self.sum()?);
        }
        self.closed(Term::Aggregate(aggregate, terms))
    }

    fn selector(&mut self, metric: String) -> ParseResult<Term> {
        let mut filters = Vec::new();
        while !self.sign("]") {
            let name = self.name()?;
            let values = if self.sign("=") { self.values(&[',', ']'])? } else { Vec::new() };
            filters.push(Filter { name, values });
            self.sign(",");
        }
        Ok(Term::Figures(Selector { metric, filters }))
    }

    /// Parses values up to one of the end characters, which is not consumed.
    fn values(&mut self, ends: &[char]) -> ParseResult<Vec<String>> {
        let rest = self.rest();
        let length = rest.find(ends).unwrap_or(rest.len());
        self.at += length;
        Ok(rest[..length].split('|').map(|value| value.trim().to_owned()).collect())
    }

    fn number(&mut self) -> ParseResult<Term> {
        let rest = self.rest();
        let length =
            rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let number = rest[..length].parse().map_err(|_| self.wanted("a number"))?;
        self.at += length;
        Ok(Term::Number(number))
    }

    fn quoted(&mut self) -> ParseResult<String> {
        let inner = &self.rest()[1..];
        let length = inner.find('\'').ok_or_else(|| self.wanted("a closing quote"))?;
        let text = inner[..length].to_owned();
        self.at += length + 2;
        Ok(text)
    }

    fn name(&mut self) -> ParseResult<String> {
        let rest = self.rest();
        let length =
            rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        if length == 0 {
            return Err(self.wanted("a name"));
        }
        self.at += length;
        Ok(rest[..length].to_owned())
    }

    /// Consumes the given words, if they end at a word boundary.
    fn word(&mut self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word);
        let whole = after.is_some_and(|after| !after.starts_with(|next: char| next.is_alphanumeric()));
        whole && self.sign(word)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn expect(&mut self, sign: &str, expected: &'static str) -> ParseResult<()> {
        if self.sign(sign) { Ok(()) } else { Err(self.wanted(expected)) }
    }

    fn closed(&mut self, term: Term) -> ParseResult<Term> {
        self.expect(")", "a closing parenthesis")?;
        Ok(term)
    }

    fn deeper(&mut self) -> ParseResult<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(self.wanted("something less nested")) } else { Ok(()) }
    }

    /// Returns the remaining text, without leading spaces.
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn wanted(&self, expected: &'static str) -> SyntaxError {
        SyntaxError { expected, at: self.text[..self.at].chars().count() + 1 }
    }
}
