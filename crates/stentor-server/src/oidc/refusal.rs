//! The reasons for which a login at the identity provider is refused.

/// A refused login. The reason is for the log: it is constant, and holds nothing from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoginRefusal {
    pub(crate) code: RefusalCode,
    pub(crate) reason: &'static str,
}

/// A stable word for a refused login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalCode {
    /// The login has taken too long, or another browser began it.
    LoginExpired,
    /// The answer does not belong to the login that the browser began.
    StateMismatch,
    /// The person or the issuer has ended the login.
    LoginCanceled,
    /// The issuer refuses the request of this server.
    IssuerRefused,
    /// The issuer cannot be reached, is too slow, or answers with something else.
    IssuerUnavailable,
    /// The ID token does not prove who the person is.
    IdTokenInvalid,
    /// The person has no role.
    NoRole,
    /// The person has roles in more apps than a session holds.
    TooManyRoles,
    /// Too many logins.
    TooManyLogins,
}

impl LoginRefusal {
    pub(crate) const fn new(code: RefusalCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    pub(super) const fn unavailable(reason: &'static str) -> Self {
        Self::new(RefusalCode::IssuerUnavailable, reason)
    }

    pub(super) const fn invalid(reason: &'static str) -> Self {
        Self::new(RefusalCode::IdTokenInvalid, reason)
    }
}

impl RefusalCode {
    /// Returns the word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::LoginExpired => "login_expired",
            Self::StateMismatch => "state_mismatch",
            Self::LoginCanceled => "login_canceled",
            Self::IssuerRefused => "issuer_refused",
            Self::IssuerUnavailable => "issuer_unavailable",
            Self::IdTokenInvalid => "id_token_invalid",
            Self::NoRole => "no_role",
            Self::TooManyRoles => "too_many_roles",
            Self::TooManyLogins => "too_many_logins",
        }
    }

    /// Returns a sentence for the person.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::LoginExpired => "The login took too long, or began in another browser.",
            Self::StateMismatch => "The answer does not belong to a login that this browser began.",
            Self::LoginCanceled => "The login was canceled at the identity provider.",
            Self::IssuerRefused => {
                "The identity provider refused the login. The operator finds the reason there."
            }
            Self::IssuerUnavailable => "The identity provider does not answer as it should. Try again later.",
            Self::IdTokenInvalid => "The identity provider did not prove who you are.",
            Self::NoRole => "You are known, but have no role here. Ask the operator for one.",
            Self::TooManyRoles => {
                "You have roles in more apps than a session holds. Ask the operator for a role in all."
            }
            Self::TooManyLogins => "There are too many logins at once. Try again in a minute.",
        }
    }
}
