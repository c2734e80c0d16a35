//! Forms by which the kinds of tokens of one push service are told apart.

/// A form that some tokens of a push service have: one of a few letters, and a number of letters of base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenForm {
    /// The letters that can be the first.
    pub first: &'static str,
    /// The number of letters behind the first.
    pub rest_count: usize,
}

impl TokenForm {
    /// Returns true if a token has this form.
    #[must_use]
    pub fn fits(&self, token: &str) -> bool {
        // The length comes first: it is wrong for nearly every other token.
        let Some((first, rest)) = token.as_bytes().split_first() else { return false };
        rest.len() == self.rest_count
            && self.first.as_bytes().contains(first)
            && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: TokenForm = TokenForm { first: "cd", rest_count: 3 };

    #[test]
    fn a_token_of_this_form_has_its_length_its_first_letter_and_letters_of_base64url() {
        for fitting in ["cabc", "dA-9", "c___"] {
            assert!(FORM.fits(fitting), "{fitting}");
        }
        for other in ["", "c", "cab", "cabcd", "eabc", "ca:c", "ca=c", "caé"] {
            assert!(!FORM.fits(other), "{other}");
        }
    }
}
