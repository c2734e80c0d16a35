//! The same devices over TLS.

use super::GatewayOptions;
use super::messages_to_all::DeviceTrial;
use super::report::ConnectionRow;
use super::setting::GatewaySetting;
use anyhow::Context;
use rcgen::{CertificateParams, KeyPair};
use std::path::Path;
use stentor_stage::reporter::Reporter;

/// Names of this machine in the certificate.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Restarts the server with a certificate, and repeats the measurements of connections and of messages to all.
pub(super) async fn measure(
    setting: &mut GatewaySetting,
    directory: &Path,
    options: &GatewayOptions,
    reporter: &dyn Reporter,
) -> anyhow::Result<ConnectionRow> {
    let (cert_file, key_file) = (directory.join("tls.pem"), directory.join("tls.key"));
    let key = KeyPair::generate()?;
    let names = NAMES.map(str::to_owned).to_vec();
    let certificate = CertificateParams::new(names)?.self_signed(&key)?;
    std::fs::write(&cert_file, certificate.pem()).context("the certificate cannot be written")?;
    std::fs::write(&key_file, key.serialize_pem()).context("the key cannot be written")?;
    setting.restart_with_tls(&cert_file, &key_file).await?;
    let mut trial = DeviceTrial::of_gateway(setting, directory, "tls", options).await?;
    let mut row = trial.connections(reporter).await?;
    row.add(trial.messages_to_all(options, reporter).await?);
    Ok(row)
}
