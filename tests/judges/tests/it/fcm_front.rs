//! Unmodified firebase-admin clients send to the FCM emulator through a Stentor server that takes FCM's place.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use serde_json::json;
use stentor_server::config::Config;
use tokio::process::Command;

use crate::authority::RoomAuthority;
use crate::client::{Client, Report};
use crate::fcm::FIDS;
use crate::fronts::Served;
use crate::room::{Room, judge, judge_all};
use crate::trust_store;

/// The maximum number of waiting chunks in tests of a full queue.
const NARROW: u64 = 4;
/// The server's timeout for a body in tests where it must outlast the clients.
const BODY_SECONDS: u64 = 600;
/// The number of times that a client comes back to a server that has room again and may not know it yet.
const RETURNS_MAX: usize = 10;

/// A server with a service account, and the authority that its clients trust.
struct Disguised {
    served: Served,
    authority: PathBuf,
    account: PathBuf,
}

impl Disguised {
    async fn start(room: &Room) -> anyhow::Result<Self> {
        Self::with(room, |_| {}).await
    }

    async fn with(room: &Room, change: impl FnOnce(&mut Config)) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let front = Served::disguised(room, &files, change).await?;
        let account = room.file("service-account.json", &front.service_account().await?)?;
        Ok(Self { served: front, authority: files.authority, account })
    }

    async fn report(&self, client: Client, script: &str) -> anyhow::Result<Report> {
        Report::of(self.command(client, script)?).await
    }

    /// Lets a client send one message.
    async fn once(&self, client: Client, script: &str) -> anyhow::Result<Report> {
        let mut command = self.command(client, script)?;
        command.arg("once");
        Report::of(command).await
    }

    fn command(&self, client: Client, script: &str) -> anyhow::Result<Command> {
        if matches!(client, Client::JavaFirebase) {
            trust_store::make(&self.authority)?;
        }
        let mut command = client.command(script, &self.authority);
        command.arg(&self.account).arg(client.home());
        Ok(command)
    }

    /// Checks the facts common to every SDK: its messages are in the ledger and at FCM, and have our ids.
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
        // Two that died before, 38 at once and ten one by one, of which two have audiences; two more are a multicast's, and four go to
        // installation ids.
        here.check(&report, &tokens, 56).await?;
        here.served.reached(FIDS)?;
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
        here.check(&report, &each("each", 199), 216).await?;
        here.served.reached(FIDS)?;
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

/// Checks that a client reports a full queue under its own name `error`, that nothing of the refused request was kept, and that the client
/// succeeds later.
async fn refused_when_full(room: Room, client: Client, script: &str, error: &str) -> anyhow::Result<()> {
    let here = Disguised::with(&room, |config| config.pipeline.max_queued_chunks = NARROW).await?;
    let held = here.served.fill(10 * NARROW as usize).await?;
    ensure!(held >= NARROW as usize, "{held} messages and no room");
    here.once(client, script).await?.failed("send", error)?;
    here.served.release()?;
    ensure!(here.served.books().await?.0 == held, "something was refused and kept");
    for _ in 0..RETURNS_MAX {
        let report = here.once(client, script).await?;
        if report.step("send")?["ok"] == true {
            ensure!(here.served.books().await?.0 == held + 1, "one was sent once there was room");
            return here.served.reached(["good"]);
        }
        report.failed("send", error)?;
    }
    bail!("no room after {RETURNS_MAX} attempts")
}

#[test]
fn firebase_admin_for_python_says_that_a_quota_is_exceeded_when_the_queue_is_full() {
    let name = "fcm_front::firebase_admin_for_python_says_that_a_quota_is_exceeded_when_the_queue_is_full";
    judge(name, Client::Python, async |room| {
        refused_when_full(room, Client::Python, "firebase_judge.py", "QuotaExceededError").await
    });
}

#[test]
fn firebase_admin_for_node_says_that_a_quota_is_exceeded_when_the_queue_is_full() {
    let name = "fcm_front::firebase_admin_for_node_says_that_a_quota_is_exceeded_when_the_queue_is_full";
    judge(name, Client::Node, async |room| {
        refused_when_full(room, Client::Node, "judge.js", "messaging/message-rate-exceeded").await
    });
}

#[test]
fn firebase_admin_for_go_says_that_a_quota_is_exceeded_when_the_queue_is_full() {
    let name = "fcm_front::firebase_admin_for_go_says_that_a_quota_is_exceeded_when_the_queue_is_full";
    judge(name, Client::Go, async |room| refused_when_full(room, Client::Go, "", "QuotaExceeded").await);
}

#[test]
fn firebase_admin_for_java_says_that_a_quota_is_exceeded_when_the_queue_is_full() {
    let name = "fcm_front::firebase_admin_for_java_says_that_a_quota_is_exceeded_when_the_queue_is_full";
    judge(name, Client::JavaFirebase, async |room| {
        let error = "RESOURCE_EXHAUSTED/QUOTA_EXCEEDED";
        refused_when_full(room, Client::JavaFirebase, "Judge.java", error).await
    });
}

/// Each SDK with its script, and its own word for a server that cannot answer now.
const UNAVAILABLE: [(Client, &str, &str); 4] = [
    (Client::Python, "firebase_judge.py", "UnavailableError"),
    (Client::Node, "judge.js", "messaging/server-unavailable"),
    (Client::Go, "", "Unavailable"),
    (Client::JavaFirebase, "Judge.java", "UNAVAILABLE/UNAVAILABLE"),
];

// One test, because each of them tries five times within seconds, and they wait at the same time.
#[test]
fn each_firebase_admin_says_that_a_server_is_unavailable_which_works_on_as_much_as_it_may() {
    let name =
        "fcm_front::each_firebase_admin_says_that_a_server_is_unavailable_which_works_on_as_much_as_it_may";
    judge_all(name, &UNAVAILABLE.map(|(client, ..)| client), async |room| {
        let narrow = |config: &mut Config| {
            config.api.requests_max_count = 1;
            config.api.body_timeout_seconds = BODY_SECONDS;
            config.api.request_timeout_seconds = BODY_SECONDS;
        };
        let here = Disguised::with(&room, narrow).await?;
        let request = here.served.occupy().await?;
        let [python, node, go, java] = UNAVAILABLE.map(|(client, script, _)| here.once(client, script));
        let (python, node, go, java) = tokio::try_join!(python, node, go, java)?;
        for (report, (.., error)) in [python, node, go, java].iter().zip(UNAVAILABLE) {
            report.failed("send", error)?;
        }
        here.served.vacate(request).await?;
        ensure!(here.served.books().await?.0 == 0, "something was refused and kept");
        here.once(Client::Go, "").await?.value("send")?;
        ensure!(here.served.books().await?.0 == 1, "one was sent once there was a place");
        here.served.reached(["good"])
    });
}
