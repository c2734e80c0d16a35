//! The settings of the server that answers.

use serde::Serialize;
use utoipa::ToSchema;

/// One setting.
#[derive(Serialize, ToSchema)]
#[schema(as = Setting)]
pub struct SettingView {
    /// `section.key`, as in the configuration file.
    pub(crate) key: String,
    /// The value in force, as TOML writes it; a secret is `[redacted]`.
    pub(crate) value: String,
    /// Source of the value: `default`, the path of the file, or the name of the variable.
    pub(crate) origin: String,
    /// The default, as TOML writes it.
    pub(crate) default: String,
    /// The meaning.
    pub(crate) about: String,
}

/// All settings, in order of name.
#[derive(Serialize, ToSchema)]
pub struct SettingList {
    pub(crate) settings: Vec<SettingView>,
}
