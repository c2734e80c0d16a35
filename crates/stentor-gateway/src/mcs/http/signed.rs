//! Statements of ours that come back: signed with the gateway's key, so that none need be kept.

use secrecy::ExposeSecret;

use crate::identity::GatewayKey;

const SEPARATOR: char = '.';

/// Signs a statement of one purpose; neither may contain what the other side could move between them.
pub(super) fn sign(key: &GatewayKey, purpose: &str, statement: &str) -> String {
    let signature = key.secret(&format!("mcs-{purpose}:{statement}"));
    format!("{statement}{SEPARATOR}{}", signature.expose_secret())
}

/// Returns the statement of a text that [`sign`] made for the same purpose.
pub(super) fn verify<'a>(key: &GatewayKey, purpose: &str, text: &'a str) -> Option<&'a str> {
    let (statement, signature) = text.rsplit_once(SEPARATOR)?;
    key.fits(&format!("mcs-{purpose}:{statement}"), signature).then_some(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_holds_for_its_purpose_and_key_alone() {
        let key = GatewayKey::new([3; 32]);
        let text = sign(&key, "one", "a.b");
        assert_eq!(verify(&key, "one", &text), Some("a.b"));
        assert_eq!(verify(&key, "two", &text), None);
        assert_eq!(verify(&GatewayKey::new([4; 32]), "one", &text), None);
        assert_eq!(verify(&key, "one", &text.replace("a.b", "a.c")), None);
        assert_eq!(verify(&key, "one", ""), None);
    }
}
