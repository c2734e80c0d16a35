//! Studies of web services at a small size: every plan runs, no wrong response is timed, and no measurement is lost.

use crate::process::{run_json, stentor};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use stentor_lab::plan::{Cell, PlanChoice, SampleChoice, StudyPlan};
use stentor_lab::record::{self, ForkRecord};
use stentor_lab::runner::gate::ValidityLimits;
use stentor_lab::runner::testbed::{CaptureResult, HalfUsage, Loopback, Testbed};
use stentor_lab::runner::{self, Settings, roster};
use stentor_lab::subject::clock::monotonic_ns;
use stentor_lab::subject::dialect::SubjectDialect;
use stentor_lab::subject::process::SubjectProcess;
use stentor_lab::subject::protocol::{Arm, ExchangeSchedule, Prepare, Report, SubjectOrder, SubjectRole};
use stentor_lab::subject::reference::Op;
use stentor_lab::subject::store::PointStore;
use stentor_lab::subject::{Definition, SubjectError};
use stentor_wire::Content;

/// Options that disable the gates of a quiet machine: these tests may run on a busy one, because they do not measure speed.
pub(crate) const NO_GATE: [&str; 6] =
    ["--gate-load", "10000", "--gate-lateness-ms", "60000", "--link", "none"];

/// Runs a part of a study with our own subjects.
pub(crate) fn run(study: &str, out: &Path, further: &[&str]) -> (i32, Value) {
    let out = out.to_str().unwrap();
    let small = ["lab", "run", study, "--forks", "1", "--samples", "2", "--out", out];
    run_json(&[&small, &NO_GATE[..], further].concat())
}

/// Runs it and requires every cell to be complete; returns the records.
fn whole(study: &str, further: &[&str]) -> Vec<ForkRecord> {
    let directory = tempfile::tempdir().unwrap();
    let (code, report) = run(study, directory.path(), &[&["--subject", "rust"], further].concat());
    assert_eq!((code, &report["ok"], &report["study"]), (0, &json!(true), &json!(study)), "{report}");
    let records = record::read_directory(directory.path()).unwrap();
    let invalid: Vec<&ForkRecord> = records.iter().filter(|one| !one.valid).collect();
    assert_eq!(report["forks"], json!({ "valid": records.len(), "invalid": 0 }), "{invalid:?}");
    assert!(report["instrument"]["cpu_seconds"].as_f64().unwrap() > 0.0, "{report}");
    for one in &records {
        assert!(one.valid && one.counts.ok == one.counts.sent, "{one:?}");
        assert!(one.latency["rtt"].n > 0, "{one:?}");
        assert!(one.first_call_ns > Some(0) || one.interruption.is_some(), "{one:?}");
        assert!(one.raw.iter().all(|raw| directory.path().join(&raw.path).exists()), "{:?}", one.raw);
    }
    records
}

#[test]
fn cai_2009_runs_with_our_subjects() {
    let records = whole("cai-2009", &["--factor", "type=Object", "--factor", "items=200"]);
    let labels: BTreeSet<&str> = records.iter().map(|one| one.subject.label.as_str()).collect();
    assert_eq!(labels, BTreeSet::from(["REST", "SOAP", "XML-RPC"]));
    // One size of one type, and the fixed reply.
    assert_eq!(records.len(), 6);
}

#[test]
fn cai_2009_runs_with_the_real_server_and_lists_longer_than_a_page_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let levels = ["--subject", "stentor", "--factor", "items=1600", "--factor", "type=Int,String,Object"];
    let (code, report) = run("cai-2009", directory.path(), &levels);
    assert_eq!((code, &report["forks"]), (0, &json!({ "valid": 9, "invalid": 0 })), "{report}");
    for one in record::read_directory(directory.path()).unwrap() {
        assert!(one.subject.server.ends_with("/server/stentor"), "{one:?}");
        // The digest would have revealed a wrong response.
        assert_eq!(
            (one.counts.sent, one.counts.ok, one.subject.stack.as_str()),
            (2, 2, "stentor"),
            "{one:?}"
        );
        assert!(one.cpu.server > Some(0) && one.latency["rtt"].n == 2, "{one:?}");
        assert!(one.overlaps.is_some_and(|phases| phases.contains("client_deser")), "two calls in one");
    }
}

#[test]
fn anacleto_2012_runs_with_devices_of_the_real_server_through_every_face_and_keeps_them_as_rows() {
    let directory = tempfile::tempdir().unwrap();
    let levels = ["--subject", "stentor", "--factor", "poi=461", "--factor", "page=256"];
    let (code, report) = run("anacleto-2012", directory.path(), &levels);
    assert_eq!((code, &report["forks"]), (0, &json!({ "valid": 14, "invalid": 0 })), "{report}");
    let records = record::read_directory(directory.path()).unwrap();
    let labels: BTreeSet<&str> = records.iter().map(|one| one.subject.label.as_str()).collect();
    assert_eq!(labels.len(), 10, "{labels:?}");
    for one in &records {
        // The digest would have revealed a wrong response.
        assert!(one.valid && one.counts.ok == one.counts.sent && one.cpu.server > Some(0), "{one:?}");
        assert!(one.latency.contains_key("insert"), "{one:?}");
        assert!(one.subject.server.ends_with("/server/stentor"), "{one:?}");
    }
    let pages = records.iter().find(|one| one.experiment == "points at a time").unwrap();
    // Two complete synchronisations of eight pages each.
    assert_eq!((pages.counts.sent, pages.latency["sync"].n), (16, 2));
    let bytes = |label: &str| {
        let one =
            records.iter().find(|one| one.subject.label == label && one.cell.contains_key("poi")).unwrap();
        one.bytes.as_ref().unwrap().down.app / one.bytes.as_ref().unwrap().exchanges
    };
    assert!(bytes("HTTP PROBUF") < bytes("HTTP JSON") && bytes("HTTP JSON") < bytes("HTTP XML SAX"));
    assert!(bytes("HTTP XML SAX") > 461 * 541, "all letters of 461 points");
}

#[test]
fn nunes_2014_runs_with_the_real_server_that_lists_in_order_what_it_was_sent() {
    let directory = tempfile::tempdir().unwrap();
    let faces = "rest+xml/server/stentor,grpc/server/stentor";
    let levels = ["--subject", faces, "--factor", "message=100Kb", "--factor", "cpu=whole"];
    let (code, report) = run("nunes-2014", directory.path(), &levels);
    assert_eq!((code, &report["forks"]), (0, &json!({ "valid": 2, "invalid": 0 })), "{report}");
    for one in record::read_directory(directory.path()).unwrap() {
        assert_eq!((one.counts.ok, one.subject.stack.as_str()), (2, "stentor"), "{one:?}");
        assert!(one.overlaps.is_some_and(|phases| phases.contains("client_deser")), "many calls in one");
    }
    let page = directory.path().join("report.md");
    run_json(&["lab", "report", directory.path().to_str().unwrap(), "--md", page.to_str().unwrap()]);
    let again = format!(
        " --samples 2 --subject {faces} --factor message=100Kb --factor cpu=whole --forks 1 --gate-load 10000 --gate-lateness-ms 60000 --out "
    );
    assert!(std::fs::read_to_string(page).unwrap().contains(&again), "how to run it again");
}

#[test]
fn what_of_a_study_the_real_server_cannot_be_asked_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    for (study, levels, why) in [
        ("anacleto-2012", &["--factor", "page=1884"][..], "at most 1,000 entries a page"),
        ("albertengo-2020", &[], "no operation that sends a payload back"),
    ] {
        let (code, report) = run(study, directory.path(), &[&["--subject", "stentor"], levels].concat());
        assert!(code == 2 && report["error"].as_str().unwrap().contains(why), "{report}");
    }
}

#[test]
fn anacleto_2012_runs_with_rows_on_both_sides() {
    let levels = ["--factor", "poi=1", "--factor", "page=1024", "--factor", "interruption=none"];
    let records = whole("anacleto-2012", &levels);
    let sync = records.iter().find(|one| one.subject.label == "HTTP XML SAX").unwrap();
    assert!(
        ["request", "transfer", "client_deser", "insert"]
            .iter()
            .all(|phase| sync.latency.contains_key(*phase))
    );
    let pages = records.iter().find(|one| one.experiment == "points at a time").unwrap();
    // Two complete synchronisations of two pages each.
    assert_eq!((pages.counts.sent, pages.latency["sync"].n), (4, 2));
}

#[test]
fn a_synchronisation_that_is_interrupted_keeps_its_pages_and_asks_for_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let levels =
        ["--factor", "poi=1", "--factor", "page=1884", "--factor", "interruption=killed,cut and killed"];
    let (code, report) =
        run("anacleto-2012", directory.path(), &[&["--subject", "rust"], &levels[..]].concat());
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    let records = record::read_directory(directory.path()).unwrap();
    let killed: Vec<&ForkRecord> = records.iter().filter(|one| one.interruption.is_some()).collect();
    assert_eq!(killed.len(), 2, "JSON and Protocol Buffers: {report}");
    for one in killed {
        let found = one.interruption.clone().unwrap();
        assert!(one.valid && found.is_stale && found.pages_kept < found.pages, "{found:?}");
        assert_eq!((found.pages, found.rows_offline), (30, 64 * found.pages_kept));
        assert!(found.pages_again <= 1, "only the page that was under way: {found:?}");
        assert_eq!(one.counts.ok, found.pages - found.pages_kept, "it asked for what it lacked");
        assert!(found.silence_ns > 0 && one.latency["sync"].max > found.silence_ns, "{found:?}");
    }
    let not_run = report["not_run"].as_array().unwrap().iter();
    let reasons: Vec<&str> = not_run
        .filter(|one| one["what"].as_str().unwrap().contains("cut and killed"))
        .map(|one| one["reason"].as_str().unwrap())
        .collect();
    assert!(reasons.len() == 2 && reasons.iter().all(|why| why.contains("cut only where")), "{report}");
}

#[test]
fn nunes_2014_runs_with_phases_on_both_sides() {
    // Limits require control groups, which require root.
    let levels = ["--factor", "cpu=whole", "--factor", "memory=all", "--factor", "message=100Kb"];
    let records = whole("nunes-2014", &levels);
    let phases = ["client_ser", "client_deser", "server_deser", "server_work", "server_ser", "svc", "net"];
    assert!(records.iter().all(|one| phases.iter().all(|phase| one.latency.contains_key(*phase))));
    for one in &records {
        // Ours never stream, both halves read one clock, and the program is named.
        let clock = one.clock.as_ref().map(|clock| clock.method.as_str());
        assert_eq!((one.overlaps.clone(), clock), (Some(BTreeSet::new()), Some("shared")));
        assert!(!one.env.commit.is_empty() && !one.env.tool_version.is_empty(), "{:?}", one.env);
    }
    let bytes = records.iter().find(|one| one.subject.label == "REST+XML").unwrap().bytes.clone().unwrap();
    let size = bytes.down.app as f64 / bytes.exchanges as f64;
    assert!((size / 102_400.0 - 1.0).abs() < 0.05, "100 Kb are {size} bytes");
}

#[test]
fn albertengo_2020_runs_in_three_variants_with_and_without_tls() {
    let named = ["--factor", "payload=64 B", "--variant", "paper,code,modern"];
    let records = whole("albertengo-2020", &named);
    let of = |name: &'static str| records.iter().filter(move |one| one.experiment == name);
    let cells: BTreeSet<(&str, &str, &str)> = of("RTT")
        .filter(|one| one.cell.contains_key("connection"))
        .map(|one| (one.variant.as_str(), one.cell["connection"].as_str(), one.cell["tls"].as_str()))
        .collect();
    let expected = [
        ("code", "fresh", "off"),
        ("modern", "kept", "on"),
        ("paper", "fresh", "off"),
        ("paper", "kept", "off"),
    ];
    assert_eq!(cells, BTreeSet::from(expected));
    // The published code's one-way test answers with a number alone.
    let oneway: Vec<&ForkRecord> = of("OWD").collect();
    let bytes = oneway[0].bytes.clone().unwrap();
    assert_eq!((oneway.len(), oneway[0].variant.as_str(), bytes.down.payload), (1, "code", 0));
    assert!(bytes.down.app < 32 * bytes.exchanges && oneway[0].latency.contains_key("rtt"), "{bytes:?}");
    assert!(records.iter().any(|one| one.subject.label == "gRPC (modern)"));
    // The push services, with messages through the gateway, up and down.
    let pushed = || of("RTT").filter(|one| one.cell.contains_key("push_tls"));
    let cells: BTreeSet<(&str, &str)> =
        pushed().map(|one| (one.subject.label.as_str(), one.variant.as_str())).collect();
    let services = ["FCM", "GCM"].into_iter();
    let expected = services.flat_map(|service| ["code", "modern", "paper"].map(|variant| (service, variant)));
    assert_eq!(cells, expected.collect());
    for one in pushed() {
        let (owd, rtt) = (&one.latency["owd"], &one.latency["rtt"]);
        assert!(owd.n == 2 && owd.mean > 0.0 && owd.mean < rtt.mean, "up is a part of up and down: {one:?}");
        assert!(one.subject.versions.contains_key("gateway.stentor"), "{one:?}");
        let bytes = one.bytes.clone().unwrap();
        assert!(bytes.up.app > bytes.up.payload && bytes.up.payload == 64 * bytes.exchanges, "{bytes:?}");
        let is_sent_back = (one.subject.label.as_str(), one.variant.as_str()) != ("GCM", "code");
        assert_eq!(bytes.down.payload, if is_sent_back { bytes.up.payload } else { 0 }, "{bytes:?}");
    }
}

#[test]
fn a_subject_with_wrong_answers_is_refused_and_nothing_of_it_is_timed() {
    let directory = tempfile::tempdir().unwrap();
    let program = stentor(&[]).get_program().to_owned().into_string().unwrap();
    let speak = [program.as_str(), "lab", "subject", "speak", "soap", "--manner", "forgetful"];
    let text = format!("id = 'soap/test/rust'\nops = ['array']\nroles = ['server']\nrun = {speak:?}\n");
    let (subjects, out) = (directory.path().join("subjects"), directory.path().join("out"));
    std::fs::create_dir(&subjects).unwrap();
    std::fs::write(subjects.join("wrong.toml"), text).unwrap();
    let wish = ["--subjects", subjects.to_str().unwrap(), "--subject", "soap/test", "--factor", "type=Int"];
    let (code, report) = run("cai-2009", &out, &wish);
    assert_eq!((code, &report["ok"], &report["cells"]), (1, &json!(false), &json!(0)), "{report}");
    let reason = report["not_run"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["what"].as_str().unwrap().contains("soap/test/rust"));
    assert!(reason.unwrap()["reason"].as_str().unwrap().contains("refused: digest"), "{report}");
    assert_eq!(record::read_directory(&out).unwrap(), []);
}

#[test]
fn a_run_is_the_same_as_itself_and_one_that_is_slower_fails_the_comparison() {
    let directory = tempfile::tempdir().unwrap();
    let (before, after) = (directory.path().join("before"), directory.path().join("after"));
    let part = ["--subject", "rust", "--factor", "items=200", "--factor", "type=Int", "--forks", "3"];
    let small = ["lab", "run", "cai-2009", "--samples", "2", "--out", before.to_str().unwrap()];
    let (code, report) = run_json(&[&small[..], &NO_GATE[..], &part[..]].concat());
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    std::fs::create_dir(&after).unwrap();
    let slower = |mut one: ForkRecord| {
        one.latency.values_mut().for_each(|times| times.p50 *= 1_000);
        serde_json::to_string(&one).unwrap() + "\n"
    };
    let records: String = record::read_directory(&before).unwrap().into_iter().map(slower).collect();
    std::fs::write(after.join(record::RECORDS), records).unwrap();
    let compared = |one: &Path, other: &Path| {
        run_json(&["lab", "compare", one.to_str().unwrap(), other.to_str().unwrap()])
    };
    let changes = |report: &Value| -> BTreeSet<String> {
        let cells = report["cells"].as_array().unwrap().iter();
        cells.map(|cell| cell["change"].as_str().unwrap().to_owned()).collect()
    };
    let (code, report) = compared(&before, &before);
    assert!(code == 0 && !changes(&report).contains("slower"), "{report}");
    assert_eq!(report["cells"][0]["spread_distance"], json!(0.0), "{report}");
    let (code, report) = compared(&before, &after);
    assert_eq!((code, changes(&report)), (1, BTreeSet::from(["slower".to_owned()])), "{report}");
    let (code, report) = compared(&after, &before);
    assert_eq!((code, changes(&report)), (0, BTreeSet::from(["faster".to_owned()])), "{report}");
}

#[test]
fn a_run_that_is_killed_goes_on_and_loses_nothing_that_had_ended() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let small =
        ["lab", "run", "cai-2009", "--subject", "rust", "--forks", "3", "--samples", "2", "--out", out];
    let arguments = [&small[..], &NO_GATE[..], &["--factor", "items=200", "--factor", "type=Int"]].concat();
    let mut child = stentor(&arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let file = directory.path().join(record::RECORDS);
    let ended = || record::read(&file).unwrap_or_default().len();
    let patience = Instant::now() + Duration::from_secs(60);
    while ended() < 3 && Instant::now() < patience {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = std::fs::read_to_string(&file).unwrap();
    let recorded = record::read(&file).unwrap();
    assert!(recorded.len() >= 3, "{} forks ended", recorded.len());
    let (code, report) = run_json(&[&arguments[..], &["--resume"]].concat());
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    let after = record::read(&file).unwrap();
    assert!(std::fs::read_to_string(&file).unwrap().starts_with(before.trim_end()));
    let keys: BTreeSet<String> = after.iter().map(ForkRecord::key).collect();
    assert_eq!((keys.len(), after.len()), (18, 18), "six cells, three forks, none twice");
}

/// The loopback, with a log of each command about shares of a processor.
#[derive(Default)]
struct Noting {
    testbed: Loopback,
    words: Vec<&'static str>,
}

impl Testbed for Noting {
    fn level(&self) -> &'static str {
        "loopback"
    }

    fn objection(&self, _cell: &Cell) -> Option<String> {
        None
    }

    fn prepare(&mut self, cell: &Cell, seed: u64) -> Result<(), SubjectError> {
        self.testbed.prepare(cell, seed)
    }

    fn start(
        &mut self,
        role: SubjectRole,
        definition: &Definition,
        patience: Duration,
    ) -> Result<SubjectProcess, SubjectError> {
        self.words.push("start");
        self.testbed.start(role, definition, patience)
    }

    fn address(&self, role: SubjectRole) -> IpAddr {
        self.testbed.address(role)
    }

    fn usage(&mut self, role: SubjectRole, host: &SubjectProcess) -> HalfUsage {
        self.testbed.usage(role, host)
    }

    fn hold(&mut self, _cell: &Cell) -> Result<(), SubjectError> {
        self.words.push("hold");
        Ok(())
    }

    fn listen(&mut self) {
        self.words.push("measure");
    }

    fn captured(&mut self, pcap: Option<&Path>) -> CaptureResult {
        self.testbed.captured(pcap)
    }
}

#[tokio::test]
async fn halves_start_and_warm_up_with_a_whole_processor_and_are_measured_with_their_share() {
    let directory = tempfile::tempdir().unwrap();
    let program = stentor(&[]).get_program().to_owned().into_string().unwrap();
    let factors = BTreeMap::from([
        ("cpu".to_owned(), vec!["700MHz".to_owned()]),
        ("message".to_owned(), vec!["100Kb".to_owned()]),
    ]);
    let samples = SampleChoice { forks: Some(1), samples: Some(2) };
    let choice = PlanChoice { subjects: vec!["REST+XML".into()], factors, samples, ..PlanChoice::default() };
    let plan = StudyPlan::shipped("nunes-2014").unwrap().unwrap();
    let cells = plan
        .expand(&choice, &roster::ours(&[&program, "lab", "subject", "speak"].map(str::to_owned)))
        .unwrap()
        .cells;
    assert_eq!(cells.len(), 1);
    let gate = ValidityLimits {
        load_per_core_max: 1e4,
        lateness_p99_max_us: 1e9,
        late_pages_percent_max: 100.0,
        ..ValidityLimits::default()
    };
    let settings = Settings {
        study: "nunes-2014".into(),
        out: directory.path().to_owned(),
        seed: 1,
        gate,
        patience: Duration::from_secs(60),
        commit: "abc".into(),
        ..Settings::default()
    };
    let mut testbed = Noting::default();
    let summary = runner::run(&cells, Vec::new(), &mut testbed, &settings, &mut |_| ()).await.unwrap();
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(testbed.words, ["start", "start", "hold", "measure"]);
    let record = &record::read_directory(directory.path()).unwrap()[0];
    // Three more than the warm-up: one after the rest, and two at the reduced share, which tell the possible density of the others.
    assert_eq!(record.counts.warmup_discarded, u64::from(cells[0].amount.warmup) + 3);
    assert_eq!(record.latency["server_work"].n, 2);
}

fn half(role: SubjectRole) -> Definition {
    let program = stentor(&[]).get_program().to_owned().into_string().unwrap();
    let run = ["lab", "subject", "speak", "rest+json"].map(str::to_owned);
    let dialect = SubjectDialect::named("rest+json").unwrap();
    let mut definition = Definition::built_in(dialect, [program].into_iter().chain(run).collect());
    definition.roles = vec![role];
    definition
}

/// Starts a half and requests it to get ready; returns the port of a server.
async fn ready(role: SubjectRole, factors: &[(&str, &str)], port: u16) -> (SubjectProcess, u16) {
    let mut host = SubjectProcess::start(&half(role), Duration::from_secs(20)).unwrap();
    let factors = factors.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect();
    let address = ([127, 0, 0, 1], port).into();
    let (bind, target) =
        if role == SubjectRole::Server { (Some(address), None) } else { (None, Some(address)) };
    let prepare = Prepare { role, op: Op::Points, factors, bind, target, seed: 7, variant: String::new() };
    let Report::Ready { port, .. } = host.ask(&SubjectOrder::Prepare(prepare)).await.unwrap() else {
        panic!("not ready")
    };
    (host, port)
}

async fn arm(host: &mut SubjectProcess, interval_ms: u64, count: u64, out: &Path) {
    let schedule =
        ExchangeSchedule::Open { interval_ns: interval_ms * 1_000_000, poisson: false, max_in_flight: 1 };
    host.ask(&SubjectOrder::Arm(Arm { schedule, count, out: out.to_owned() })).await.unwrap();
}

#[tokio::test]
async fn a_client_that_is_killed_in_the_middle_shows_stale_rows_and_goes_on_at_its_last_page() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let rows = path("client.db").display().to_string();
    let cell = [("poi", "400"), ("page", "16"), ("letters", "600")];
    let server_rows = path("server.db").display().to_string();
    let (mut server, port) =
        ready(SubjectRole::Server, &[&cell[..], &[("store", &server_rows)]].concat(), 0).await;
    arm(&mut server, 0, 25, &path("server")).await;

    let client = [&cell[..], &[("store", "given"), ("insert", &rows)]].concat();
    let (mut first, _) = ready(SubjectRole::Client, &client, port).await;
    arm(&mut first, 40, 25, &path("first")).await;
    first.send(&SubjectOrder::Go { t0_ns: monotonic_ns() }).await.unwrap();
    let store = PointStore::open(Path::new(&rows)).unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    while store.pages().unwrap() < 3 && Instant::now() < patience {
        tokio::task::yield_now().await;
    }
    first.end().await;

    let offline = store.offline().unwrap();
    assert!(offline.is_stale && offline.pages >= 3 && offline.pages < 25, "{} pages", offline.pages);
    assert_eq!(offline.points.len() as u64, 16 * offline.pages, "a page is there as a whole or not at all");

    let again = [&client[..], &[("sync", "resume")]].concat();
    let (mut second, _) = ready(SubjectRole::Client, &again, port).await;
    arm(&mut second, 0, 25, &path("second")).await;
    let done = second.ask(&SubjectOrder::Go { t0_ns: monotonic_ns() }).await.unwrap();
    let Report::Done { n, errors, .. } = done else { panic!("{done:?}") };
    assert_eq!((n, errors), (25 - offline.pages, 0), "it asks for what it lacks and nothing else");
    second.stop().await.unwrap();
    server.stop().await.unwrap();

    let offline = store.offline().unwrap();
    let factors = [("poi", "400")].map(|(name, level)| (name.to_owned(), level.to_owned())).into();
    assert!(!offline.is_stale);
    assert!(Content::Points(offline.points) == Op::Points.exchange(&factors, 7).unwrap().answer);
}
