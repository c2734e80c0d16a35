//! Values of the command line that have their names where they are used.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Returns a parser for one of several named values; the help lists the names and their meanings.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
    meaning: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|one| PossibleValue::new(word(*one)).help(meaning(*one)));
    let parser = PossibleValuesParser::new(values.collect::<Vec<_>>());
    parser.map(move |name| {
        *all.iter().find(|one| word(**one) == name).expect("only names of values are let through")
    })
}
