//! The generated part of the clients under clients/, from the OpenAPI description.

mod model;
mod python;
mod schema;
mod typescript;

use anyhow::Context as _;
use model::ApiModel;

/// A generated file of a client, with its generator.
pub(super) struct ClientFile {
    /// Path of the file, from the root.
    pub(super) path: &'static str,
    write: fn(&ApiModel) -> String,
}

/// All of them.
pub(super) const FILES: &[ClientFile] = &[
    ClientFile { path: "clients/python/src/stentor/_types.py", write: python::types },
    ClientFile { path: "clients/python/src/stentor/_operations.py", write: python::operations },
    ClientFile { path: "clients/typescript/src/types.ts", write: typescript::types },
    ClientFile { path: "clients/typescript/src/operations.ts", write: typescript::operations },
];

/// Writes all files of the clients from the text of the OpenAPI description.
pub(super) fn texts(openapi: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
    let document = serde_json::from_str(openapi).context("the OpenAPI description is not JSON")?;
    let model = ApiModel::of(&document)?;
    Ok(FILES.iter().map(|file| (file.path, (file.write)(&model))).collect())
}

#[cfg(test)]
mod tests;
