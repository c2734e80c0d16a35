//! The candidates of a measurement.

use reqwest::Url;
use stentor_lab::comparison::{ComparedCandidate, MeasuredTime};

/// A command, or the URL of a service.
#[derive(Clone, Debug)]
pub(super) enum Candidate {
    /// A shell command.
    Command(String),
    /// A service.
    Service(Box<Url>),
}

impl Candidate {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Command(line) => line,
            Self::Service(url) => url.as_str(),
        }
    }

    pub(super) fn compared(&self) -> ComparedCandidate {
        let time = match self {
            Self::Command(_) => MeasuredTime::Run,
            Self::Service(_) => MeasuredTime::Request,
        };
        ComparedCandidate { name: self.name().to_owned(), time }
    }
}

/// Reads a URL or a command. A URL with a password is refused, because the report names its candidates.
pub(super) fn parse(text: &str) -> Result<Candidate, String> {
    if !["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
        let is_empty = text.trim().is_empty();
        return if is_empty {
            Err("a URL or a command is wanted".to_owned())
        } else {
            Ok(Candidate::Command(text.to_owned()))
        };
    }
    let url = Url::parse(text).map_err(|error| format!("the URL cannot be read: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL has a password, which the report would show: use --header".to_owned());
    }
    Ok(Candidate::Service(Box::new(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_like_a_url_is_one_and_all_else_is_a_command() {
        for (text, is_command) in
            [("http://a/", false), ("https://a:8443/b?c", false), ("curl http://a/", true), ("./new", true)]
        {
            let candidate = parse(text).expect(text);
            assert_eq!((matches!(candidate, Candidate::Command(_)), candidate.name()), (is_command, text));
        }
        for (text, reason) in [
            ("", "is wanted"),
            ("  ", "is wanted"),
            ("http://", "cannot be read"),
            ("http://me:key@a/", "--header"),
        ] {
            assert!(parse(text).expect_err(text).contains(reason), "{text}");
        }
    }
}
