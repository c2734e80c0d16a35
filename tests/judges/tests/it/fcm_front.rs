//! firebase-admin, unmodified, sends through a server of ours, which stands where FCM is for it, to the FCM emulator.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::json;

use crate::authority::RoomAuthority;
use crate::client::{Client, Report};
use crate::fronts::Served;
use crate::room::{Room, judge};
use crate::trust_store;

/// A server with a service account, and the authority that its clients trust.
struct Disguised {
    served: Served,
    authority: PathBuf,
    account: PathBuf,
}

impl Disguised {
    async fn start(room: &Room) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let served = Served::disguised(room, &files).await?;
        let account = room.file("service-account.json", &served.service_account().await?)?;
        Ok(Self { served, authority: files.authority, account })
    }

    async fn report(&self, client: Client, script: &str) -> anyhow::Result<Report> {
        let mut command = client.command(script, &self.authority);
        command.arg(&self.account).arg(client.home());
        Report::of(command).await
    }

    /// Demands what is the same for every SDK: what it sent is in the ledger and at FCM, and has our ids.
    async fn check(&self, report: &Report, each: &[String], count: usize) -> anyhow::Result<()> {
        for step in ["send", "rich", "dry run", "topic", "condition"] {
            let name = report.value(step)?.as_str().context("a message name")?;
            ensure!(name.starts_with(&format!("projects/{}/messages/", self.served.app)), "{step}: {name}");
        }
        let both = json!({"success": 2, "failure": 0});
        report.is("subscribe", &both)?;
        report.is("unsubscribe", &both)?;
        report.is("multicast", &json!({"success": 2, "failure": 0, "errors": []}))?;
        let (messages, _) = self.served.books().await?;
        ensure!(messages == count, "{messages} messages are in the ledger instead of {count}");
        self.served.reached(each.iter().map(String::as_str))?;
        self.served.reached(["multi-1", "multi-2", "busy"])?;
        let subscribed = self.served.fcm.counts("subscribed");
        ensure!(subscribed.accepted == 2, "one by the topic, one by the condition: {subscribed:?}");
        ensure!(self.served.fcm.counts("dry").attempts == 0, "a dry run asks nobody");
        Ok(())
    }
}

fn each(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number}")).collect()
}

#[test]
fn firebase_admin_for_python_sends_through_the_front_to_fcm() {
    let name = "fcm_front::firebase_admin_for_python_sends_through_the_front_to_fcm";
    judge(name, Client::Python, async |room| {
        let here = Disguised::start(&room).await?;
        here.served.bury("gone").await?;
        here.served.bury("gone-many").await?;
        let report = here.report(Client::Python, "firebase_judge.py").await?;
        let one_gone = json!({"success": 19, "failure": 1, "errors": ["UnregisteredError"]});
        report.is("send each", &one_gone)?;
        report.is("send each async", &one_gone)?;
        report.failed("gone", "UnregisteredError")?;
        report.failed("too big", "InvalidArgumentError")?;
        let tokens = [each("each", 19), each("async", 19)].concat();
        // Two that died before, 38 at once and ten one by one, of which two have audiences; two more are a multicast's.
        here.check(&report, &tokens, 52).await?;
        here.served.forget_credential().await?;
        let report = here.report(Client::Python, "firebase_judge.py").await?;
        report.failed("send", "ThirdPartyAuthError")
    });
}

#[test]
fn firebase_admin_for_node_sends_through_the_front_to_fcm() {
    let name = "fcm_front::firebase_admin_for_node_sends_through_the_front_to_fcm";
    judge(name, Client::Node, async |room| {
        let here = Disguised::start(&room).await?;
        here.served.bury("gone").await?;
        here.served.bury("gone-many").await?;
        let report = here.report(Client::Node, "judge.js").await?;
        let gone = "messaging/registration-token-not-registered";
        report.is("send each", &json!({"success": 199, "failure": 1, "errors": [gone]}))?;
        report.failed("gone", gone)?;
        report.failed("too big", "messaging/invalid-argument")?;
        here.check(&report, &each("each", 199), 212).await?;
        here.served.forget_credential().await?;
        let report = here.report(Client::Node, "judge.js").await?;
        report.failed("send", "messaging/third-party-auth-error")
    });
}

#[test]
fn firebase_admin_for_go_sends_through_the_front_to_fcm() {
    let name = "fcm_front::firebase_admin_for_go_sends_through_the_front_to_fcm";
    judge(name, Client::Go, async |room| {
        let here = Disguised::start(&room).await?;
        here.served.bury("gone").await?;
        here.served.bury("gone-many").await?;
        let report = here.report(Client::Go, "").await?;
        report.is("send each", &json!({"success": 19, "failure": 1, "errors": ["Unregistered"]}))?;
        report.failed("gone", "Unregistered")?;
        report.failed("too big", "InvalidArgument")?;
        here.check(&report, &each("each", 19), 28).await?;
        here.served.forget_credential().await?;
        let report = here.report(Client::Go, "").await?;
        report.failed("send", "ThirdPartyAuthError")
    });
}

#[test]
fn firebase_admin_for_java_sends_through_the_front_to_fcm() {
    let name = "fcm_front::firebase_admin_for_java_sends_through_the_front_to_fcm";
    judge(name, Client::JavaFirebase, async |room| {
        let here = Disguised::start(&room).await?;
        trust_store::make(&here.authority)?;
        here.served.bury("gone").await?;
        here.served.bury("gone-many").await?;
        let report = here.report(Client::JavaFirebase, "Judge.java").await?;
        let one_gone = json!({"success": 19, "failure": 1, "errors": ["NOT_FOUND/UNREGISTERED"]});
        report.is("send each", &one_gone)?;
        report.is("send each async", &one_gone)?;
        let both = json!({"success": 2, "failure": 0});
        for step in ["subscribe again", "subscribe by iid", "unsubscribe by iid"] {
            report.is(step, &both)?;
        }
        report.failed("gone", "NOT_FOUND/UNREGISTERED")?;
        for step in ["too big", "reserved"] {
            report.failed(step, "INVALID_ARGUMENT/INVALID_ARGUMENT")?;
        }
        let tokens = [each("each", 19), each("async", 19)].concat();
        // Two that died before, 38 at once, two by a multicast and five one by one, of which two have audiences.
        here.check(&report, &tokens, 47).await?;
        here.served.forget_credential().await?;
        let report = here.report(Client::JavaFirebase, "Judge.java").await?;
        report.failed("send", "UNAUTHENTICATED/THIRD_PARTY_AUTH_ERROR")
    });
}
