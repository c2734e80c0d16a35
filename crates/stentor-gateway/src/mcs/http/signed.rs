//! Statements signed with the gateway's key and returned by clients, so that the server need not store them.

use secrecy::ExposeSecret;

use crate::identity::GatewayKey;

const SEPARATOR: char = '.';

/// Signs a statement for one purpose. A colon separates the two, so a purpose must not contain one.
pub(super) fn sign(key: &GatewayKey, purpose: &str, statement: &str) -> String {
    let signature = key.secret(&format!("mcs-{purpose}:{statement}"));
    format!("{statement}{SEPARATOR}{}", signature.expose_secret())
}

/// Returns the statement of a text created by [`sign`] for the same purpose.
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
