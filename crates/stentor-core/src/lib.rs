//! Nouns, rules and ports of Stentor: no IO, no runtime, no SQL.
