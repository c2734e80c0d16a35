//! Foreign clients of Huawei Push Kit against the HMS emulator.

use anyhow::{Context, ensure};
use serde_json::json;
use stentor_emulators::hms::{HmsAuth, HmsClient, HmsConfig, HmsOptions};
use stentor_emulators::policy::{Script, ScriptedAnswer, ServiceError};
use stentor_emulators::{HmsEmulator, RunningHms};

use crate::client::{Client, Report};
use crate::policy::scripted;
use crate::room::judge;

const CLIENT: &str = "104288077";
const SECRET: &str = "judged-secret";

async fn start() -> anyhow::Result<RunningHms> {
    let client = HmsClient {
        client_id: CLIENT.to_owned(),
        client_secret: SECRET.to_owned(),
        project_id: "736430079244623146".to_owned(),
    };
    let then = ScriptedAnswer::Error(ServiceError::new("80300007"));
    let gone = Script { prefix: Some("gone".to_owned()), then, ..Script::default() };
    let config = HmsConfig {
        listen: ([127, 0, 0, 1], 443).into(),
        policy: scripted(vec![gone]),
        vendor: HmsOptions {
            auth: HmsAuth { clients: vec![client], ..HmsAuth::default() },
            ..HmsOptions::default()
        },
        ..HmsConfig::default()
    };
    Ok(HmsEmulator::start(config).await?)
}

#[test]
fn huaweis_sdk_for_python_gets_along_with_the_hms_emulator() {
    judge("hms::huaweis_sdk_for_python_gets_along_with_the_hms_emulator", Client::Hms, async |room| {
        let hms = start().await?;
        let authority = room.file("authority.pem", hms.ca_pem().context("the emulator has TLS")?)?;
        let mut command = Client::Hms.command("judge.py", &authority);
        command.arg(CLIENT).arg(SECRET).arg(&authority);
        let report = Report::of(command).await?;
        let success = json!(["80000000", "Success"]);
        for step in ["single", "data", "many", "dry run"] {
            report.is(step, &success)?;
        }
        let listed = json!({"success": 2, "failure": 1, "illegal_tokens": ["gone-1"]});
        report.is("partial", &json!(["80100000", listed]))?;
        report.is("small", &json!(true))?;
        // The SDK takes nothing but 200 for an answer.
        report.failed("dead", "ApiCallError")?;
        report.failed("wrong secret", "HTTPError")?;
        for token in ["hms-one", "hms-data", "hms-0", "hms-999", "hms-two", "hms-three", "hms-small"] {
            let counts = hms.counts(token);
            ensure!(counts.accepted == 1 && counts.attempts == 1, "{token} is not counted once: {counts:?}");
        }
        let (dry, totals) = (hms.counts("hms-dry"), hms.sums().tokens);
        ensure!(dry.validate_only == 1 && dry.accepted == 0, "a dry run is not a message: {dry:?}");
        ensure!(totals.accepted == 1_005 && totals.tokens_accepted_twice == 0, "{totals:?}");
        Ok(())
    });
}
