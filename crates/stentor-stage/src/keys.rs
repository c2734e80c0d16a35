//! The keys of the demo: made for one run, and known to its processes only.

use crate::devices::StagedService;
use anyhow::Context;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::{Value, json};

const PROJECT: &str = "stentor-demo";
const BUNDLE: &str = "com.example.stentor";
const ACCOUNT: &str = "sender@stentor-demo.iam.gserviceaccount.com";
const TEAM: &str = "DEMOTEAM01";
const KEY: &str = "DEMOKEY001";
const CLIENT: &str = "100000001";
const HMS_PROJECT: &str = "700000000000000001";
const TENANT: &str = "72f988bf-86f1-41af-91ab-2d7cd011db47";
const SECRET_LETTERS: usize = 32;

/// A service account for FCM, a signing key for APNs, and a secret for the push services that have one.
pub struct Keys {
    rsa: KeyPair,
    p256: KeyPair,
    secret: String,
}

impl Keys {
    /// Creates all keys.
    pub fn make() -> anyhow::Result<Self> {
        let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
            .context("no RSA key can be made")?;
        let p256 = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("no P-256 key can be made")?;
        // Digits of a fresh key: as hard to guess as that.
        let digits = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("no secret can be made")?;
        let digits = digits.public_key_raw().iter().skip(1).map(|byte| format!("{byte:02x}"));
        let secret = digits.collect::<String>()[..SECRET_LETTERS].to_owned();
        Ok(Self { rsa, p256, secret })
    }

    /// Adds the accepted senders to an emulator's settings.
    pub fn introduce(&self, service: StagedService, settings: &mut Value) {
        match service {
            StagedService::Fcm => {
                settings["projects"] = json!([PROJECT]);
                let public_key = self.rsa.public_key_pem();
                settings["auth"] =
                    json!({"accounts": [{"client_email": ACCOUNT, "public_key_pem": public_key}]});
            }
            StagedService::Apns => {
                settings["topics"] = json!([BUNDLE]);
                let public_key = self.p256.public_key_pem();
                settings["keys"] = json!([{"team_id": TEAM, "key_id": KEY, "public_key_pem": public_key}]);
            }
            StagedService::Hms => {
                settings["projects"] = json!([HMS_PROJECT]);
                let client = json!({
                    "client_id": CLIENT, "client_secret": self.secret, "project_id": HMS_PROJECT,
                });
                settings["auth"] = json!({"clients": [client]});
            }
            StagedService::Gcm => settings["keys"] = json!([self.secret]),
            // Each sender identifies itself by a key of its own.
            StagedService::WebPush => {}
            StagedService::Wns => {
                settings["clients"] = json!([{"client_id": CLIENT, "client_secret": self.secret}]);
            }
        }
    }

    /// The credential of a push service at this address.
    pub fn credential(&self, service: StagedService, endpoint: &str, ca_pem: &str) -> Value {
        match service {
            StagedService::Fcm => self.fcm_credential(endpoint, ca_pem),
            StagedService::Apns => self.apns_credential(endpoint, ca_pem),
            StagedService::Hms => json!({
                "client_secret": self.secret,
                "client_id": CLIENT,
                "project_id": HMS_PROJECT,
                "endpoint": endpoint,
                "token_endpoint": format!("{endpoint}/oauth2/v3/token"),
                "ca_pem": ca_pem,
            }),
            StagedService::WebPush => json!({"subject": "mailto:demo@example.com", "ca_pem": ca_pem}),
            StagedService::Wns => json!({
                "tenant_id": TENANT,
                "client_id": CLIENT,
                "client_secret": self.secret,
                "token_endpoint": format!("{endpoint}/{TENANT}/oauth2/v2.0/token"),
                "ca_pem": ca_pem,
            }),
            StagedService::Gcm => json!({"api_key": self.secret, "endpoint": endpoint, "ca_pem": ca_pem}),
        }
    }

    /// The FCM credential, in the shape in which Google issues service accounts.
    pub fn fcm_credential(&self, endpoint: &str, ca_pem: &str) -> Value {
        let token_uri = format!("{endpoint}/token");
        json!({
            "service_account": {
                "type": "service_account",
                "project_id": PROJECT,
                "private_key_id": "0000000000000000000000000000000000000001",
                "private_key": self.rsa.serialize_pem(),
                "client_email": ACCOUNT,
                "client_id": "100000000000000000001",
                "auth_uri": "https://accounts.google.com/o/oauth2/auth",
                "token_uri": token_uri,
                "universe_domain": "googleapis.com",
            },
            "endpoint": endpoint,
            "ca_pem": ca_pem,
            "quota": "none",
        })
    }

    /// The APNs credential.
    pub fn apns_credential(&self, endpoint: &str, ca_pem: &str) -> Value {
        json!({
            "key_p8": self.p256.serialize_pem(),
            "key_id": KEY,
            "team_id": TEAM,
            "bundle_id": BUNDLE,
            "endpoint": endpoint,
            "ca_pem": ca_pem,
        })
    }
}
