//! Schemas of credentials: the fields as data, for parsing, prompting, documentation and display.

mod read;

use serde_json::Value;

/// Largest number of connections in a credential.
pub const CONNECTIONS_MAX_COUNT: u64 = 1_024;
/// Largest quota in a credential, in messages per minute; larger values are no meaningful quotas.
pub const QUOTA_MAX_PER_MINUTE: u32 = 1_000_000_000;

/// The schema of a credential.
#[derive(Debug)]
pub struct CredentialSchema {
    /// Name of the schema in the API reference.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Description of the operation that puts it.
    pub put: &'static str,
    /// Its fields.
    pub fields: &'static [CredentialField],
    /// The parts that may be shown.
    pub shown: &'static [Shown],
    /// Arguments of the command that would put one.
    pub example: &'static str,
}

/// One field.
#[derive(Debug)]
pub struct CredentialField {
    /// Its name in JSON.
    pub name: &'static str,
    /// True if it is required.
    pub is_required: bool,
    /// Its type.
    pub kind: CredentialFieldKind,
    /// Its description, without a full stop.
    pub about: &'static str,
    /// The default, if it is absent.
    pub when_absent: Option<&'static str>,
    /// The source of its value in the command.
    pub input: Input,
}

/// The type of a field.
#[derive(Debug)]
pub enum CredentialFieldKind {
    /// Text that is not blank.
    Text,
    /// A key or certificates in PEM.
    Pem,
    /// Scheme, host and port of a server.
    Endpoint,
    /// A URL.
    Url,
    /// Text of a certain form.
    Form(&'static TextForm),
    /// One of several words.
    Choice(&'static Choice),
    /// An object with at least these fields.
    Object(&'static [CredentialField]),
    /// Messages per minute, or `none`.
    Quota,
    /// Number of connections.
    Connections,
    /// Yes or no.
    Flag,
}

/// The form of a text.
#[derive(Debug)]
pub struct TextForm {
    /// Name of its schema.
    pub name: &'static str,
    /// A pattern that ECMA 262, Python and Rust interpret alike.
    pub pattern: &'static str,
    /// Largest number of characters, if the pattern does not limit it.
    pub max_chars: Option<usize>,
    /// A valid example.
    pub example: Option<&'static str>,
    /// Its description.
    pub about: Option<&'static str>,
}

/// A set of words, one of which is chosen.
#[derive(Debug)]
pub struct Choice {
    /// Name of its schema.
    pub name: &'static str,
    /// The words.
    pub words: &'static [&'static str],
    /// Their description.
    pub about: &'static str,
}

/// The source of a field in the command.
#[derive(Debug, Clone, Copy)]
pub enum Input {
    /// No option sets it.
    Never,
    /// The file named by the command.
    File {
        /// The expected kind of file, for the error if it cannot be parsed.
        is: &'static str,
        /// The origin of a valid file.
        from: &'static str,
    },
    /// An option.
    Named(Flag),
    /// An option, or the part of the file name after this prefix.
    NamedOrInFileName(Flag, &'static str),
    /// An option with the name of a file that holds the value.
    NamedFile(Flag),
}

/// An option of the command.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without the dashes.
    pub long: &'static str,
    /// Placeholder of its value in the help.
    pub value: &'static str,
}

impl Flag {
    /// Names an option and its value.
    #[must_use]
    pub const fn new(long: &'static str, value: &'static str) -> Self {
        Self { long, value }
    }
}

/// A non-secret part of a credential.
#[derive(Debug)]
pub struct Shown {
    /// Its name in responses.
    pub name: &'static str,
    /// Its path in the credential.
    pub path: &'static [&'static str],
    /// Its description.
    pub about: &'static str,
}

impl CredentialField {
    /// Describes a required field.
    #[must_use]
    pub const fn required(name: &'static str, kind: CredentialFieldKind, about: &'static str) -> Self {
        Self { name, is_required: true, kind, about, when_absent: None, input: Input::Never }
    }

    /// Describes an optional field.
    #[must_use]
    pub const fn optional(name: &'static str, kind: CredentialFieldKind, about: &'static str) -> Self {
        Self { is_required: false, ..Self::required(name, kind, about) }
    }

    /// Returns the same field with a source in the command.
    #[must_use]
    pub const fn asked(self, input: Input) -> Self {
        let Self { name, is_required, kind, about, when_absent, .. } = self;
        Self { name, is_required, kind, about, when_absent, input }
    }
}

/// The endpoint used instead of the vendor's.
pub const ENDPOINT: CredentialField = CredentialField::optional(
    "endpoint",
    CredentialFieldKind::Endpoint,
    "Another address of the push service, such as an emulator's",
)
.asked(Input::Named(Flag::new("endpoint", "URL")));

/// The name in the endpoint's certificate.
pub const SERVER_NAME: CredentialField = CredentialField::optional(
    "server_name",
    CredentialFieldKind::Form(&HOST_NAME),
    "Name that the endpoint's certificate must bear, if it is not its host's",
);

/// A text that fits into a header.
pub const ONE_LINE: TextForm = TextForm {
    name: "OneLine",
    pattern: "^[!-~]([ -~]*[!-~])?$",
    max_chars: None,
    example: None,
    about: Some("One line of ASCII."),
};

/// A name that a certificate can be for.
const HOST_NAME: TextForm = TextForm {
    name: "HostName",
    pattern: "^([A-Za-z0-9]([A-Za-z0-9-]{0,60}[A-Za-z0-9])?\\.){0,2}[A-Za-z]([A-Za-z0-9-]{0,60}[A-Za-z0-9])?$",
    max_chars: None,
    example: Some("push.example.com"),
    about: Some("A name of a host; more parts and addresses of IP are taken as well."),
};

/// The trusted certificates of the endpoint.
pub const CA_PEM: CredentialField = CredentialField::optional(
    "ca_pem",
    CredentialFieldKind::Pem,
    "Certificates (PEM) to trust at another address instead of the system's, such as an emulator's ca.pem",
)
.asked(Input::NamedFile(Flag::new("ca", "FILE")));

/// The largest number of open connections.
pub const MAX_CONNECTIONS: CredentialField =
    CredentialField::optional("max_connections", CredentialFieldKind::Connections, "Most connections")
        .asked(Input::Named(Flag::new("max-connections", "N")));

/// The quota, with the description of its default.
#[must_use]
pub const fn quota(when_absent: &'static str) -> CredentialField {
    let about = "Messages per minute, or `none`: only the push service's own answers limit the rate";
    CredentialField {
        when_absent: Some(when_absent),
        ..CredentialField::optional("quota", CredentialFieldKind::Quota, about)
            .asked(Input::Named(Flag::new("quota", "QUOTA")))
    }
}

impl CredentialSchema {
    /// Returns the non-secret parts of a credential's JSON, in order.
    #[must_use]
    pub fn summary(&self, secret: &Value) -> Vec<(&'static str, String)> {
        let find = |shown: &Shown| {
            let found = shown.path.iter().try_fold(secret, |value, name| value.get(name))?;
            Some((shown.name, found.as_str()?.to_owned()))
        };
        self.shown.iter().filter_map(find).collect()
    }
}
