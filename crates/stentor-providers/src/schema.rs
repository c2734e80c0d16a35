//! Credentials as data: their fields, for whoever reads, asks for, describes or shows them.

mod read;

use serde_json::Value;

/// Most connections that a credential may ask for.
pub const CONNECTIONS_MAX_COUNT: u64 = 1_024;
/// Largest quota that a credential may name, in messages per minute: beyond, none is meant.
pub const QUOTA_MAX_PER_MINUTE: u32 = 1_000_000_000;

/// What a credential is made of.
#[derive(Debug)]
pub struct CredentialSchema {
    /// Name of the schema in the reference of the API.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What putting it does.
    pub put: &'static str,
    /// Its fields.
    pub fields: &'static [CredentialField],
    /// What may be shown of it.
    pub shown: &'static [Shown],
    /// Arguments of the command that would put one.
    pub example: &'static str,
}

/// One field.
#[derive(Debug)]
pub struct CredentialField {
    /// Its name in JSON.
    pub name: &'static str,
    /// Whether it must be there.
    pub is_required: bool,
    /// What stands in it.
    pub kind: CredentialFieldKind,
    /// What it means, without a full stop.
    pub about: &'static str,
    /// What its absence means.
    pub when_absent: Option<&'static str>,
    /// How the command asks for it.
    pub input: Input,
}

/// What stands in a field.
#[derive(Debug)]
pub enum CredentialFieldKind {
    /// Text that is not blank.
    Text,
    /// A key or certificates in PEM.
    Pem,
    /// Scheme, host and port of a server.
    Endpoint,
    /// An address.
    Url,
    /// Text of a certain form.
    Form(&'static TextForm),
    /// One of a few words.
    Choice(&'static Choice),
    /// An object with at least these fields.
    Object(&'static [CredentialField]),
    /// Messages per minute, or `none`.
    Quota,
    /// How many connections.
    Connections,
    /// Yes or no.
    Flag,
}

/// The form of a text.
#[derive(Debug)]
pub struct TextForm {
    /// Name of its schema.
    pub name: &'static str,
    /// Pattern that ECMA 262, Python and Rust read alike.
    pub pattern: &'static str,
    /// Most characters, where the pattern does not say.
    pub max_chars: Option<usize>,
    /// One that is right.
    pub example: Option<&'static str>,
    /// What it is.
    pub about: Option<&'static str>,
}

/// A few words, one of which is meant.
#[derive(Debug)]
pub struct Choice {
    /// Name of its schema.
    pub name: &'static str,
    /// The words.
    pub words: &'static [&'static str],
    /// What they are.
    pub about: &'static str,
}

/// How the command asks for a field.
#[derive(Debug, Clone, Copy)]
pub enum Input {
    /// It does not.
    Never,
    /// The file that the command names.
    File {
        /// What the file must be, when it cannot be read as that.
        is: &'static str,
        /// Where a right one comes from.
        from: &'static str,
    },
    /// An option.
    Named(Flag),
    /// An option, or what stands behind this in the name of the file.
    NamedOrInFileName(Flag, &'static str),
    /// An option that names a file which holds it.
    NamedFile(Flag),
}

/// An option of the command.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without the dashes.
    pub long: &'static str,
    /// What stands for its value in the help.
    pub value: &'static str,
}

impl Flag {
    /// Names an option and its value.
    #[must_use]
    pub const fn new(long: &'static str, value: &'static str) -> Self {
        Self { long, value }
    }
}

/// A part of a credential that is no secret.
#[derive(Debug)]
pub struct Shown {
    /// Its name in answers.
    pub name: &'static str,
    /// Where it stands in the credential.
    pub path: &'static [&'static str],
    /// What it is.
    pub about: &'static str,
}

impl CredentialField {
    /// Describes a field that must be there.
    #[must_use]
    pub const fn required(name: &'static str, kind: CredentialFieldKind, about: &'static str) -> Self {
        Self { name, is_required: true, kind, about, when_absent: None, input: Input::Never }
    }

    /// Describes a field that may be absent.
    #[must_use]
    pub const fn optional(name: &'static str, kind: CredentialFieldKind, about: &'static str) -> Self {
        Self { is_required: false, ..Self::required(name, kind, about) }
    }

    /// Returns the same field, for which the command asks like this.
    #[must_use]
    pub const fn asked(self, input: Input) -> Self {
        let Self { name, is_required, kind, about, when_absent, .. } = self;
        Self { name, is_required, kind, about, when_absent, input }
    }
}

/// Where requests go instead of the vendor.
pub const ENDPOINT: CredentialField = CredentialField::optional(
    "endpoint",
    CredentialFieldKind::Endpoint,
    "Another address of the push service, such as an emulator's",
)
.asked(Input::Named(Flag::new("endpoint", "URL")));

/// The name in the certificate there.
pub const SERVER_NAME: CredentialField = CredentialField::optional(
    "server_name",
    CredentialFieldKind::Text,
    "Name that the endpoint's certificate must bear, if it is not its host's",
);

/// Whom to trust there.
pub const CA_PEM: CredentialField = CredentialField::optional(
    "ca_pem",
    CredentialFieldKind::Pem,
    "Certificates (PEM) to trust at another address instead of the system's, such as an emulator's ca.pem",
)
.asked(Input::NamedFile(Flag::new("ca", "FILE")));

/// How many connections may be open.
pub const MAX_CONNECTIONS: CredentialField =
    CredentialField::optional("max_connections", CredentialFieldKind::Connections, "Most connections")
        .asked(Input::Named(Flag::new("max-connections", "N")));

/// How much may be sent, and how much when it is not said.
#[must_use]
pub const fn quota(when_absent: &'static str) -> CredentialField {
    let about = "Messages per minute, or `none`: nothing but the push service's own answers bounds the rate";
    CredentialField {
        when_absent: Some(when_absent),
        ..CredentialField::optional("quota", CredentialFieldKind::Quota, about)
            .asked(Input::Named(Flag::new("quota", "QUOTA")))
    }
}

impl CredentialSchema {
    /// Returns what may be shown of a credential's JSON, in order.
    #[must_use]
    pub fn summary(&self, secret: &Value) -> Vec<(&'static str, String)> {
        let find = |shown: &Shown| {
            let found = shown.path.iter().try_fold(secret, |value, name| value.get(name))?;
            Some((shown.name, found.as_str()?.to_owned()))
        };
        self.shown.iter().filter_map(find).collect()
    }
}
