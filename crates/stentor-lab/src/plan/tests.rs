mod named;
mod own;

use std::collections::BTreeSet;

use super::*;
use crate::runner::roster;
use crate::subject::protocol::SubjectRole;
use crate::subject::{BUILT_IN, Definition, dialect::SubjectDialect};

fn shipped(id: &str) -> StudyPlan {
    StudyPlan::shipped(id).expect("readable").expect("there")
}

fn ours() -> Vec<Definition> {
    roster::ours(&["stentor".to_owned(), "speak".to_owned()])
}

fn foreign(id: &str, roles: &[SubjectRole]) -> Definition {
    let mut definition =
        Definition::built_in(SubjectDialect::named("rest+xml-dom").expect("there"), vec!["x".into()]);
    definition.id = id.to_owned();
    definition.roles = roles.to_vec();
    definition.can.clear();
    definition
}

fn expand(id: &str, choice: &PlanChoice, definitions: &[Definition]) -> ExpandedPlan {
    shipped(id).expand(choice, definitions).expect("a sensible choice")
}

#[test]
fn every_plan_that_is_shipped_can_be_read_and_has_cells_in_every_profile() {
    for id in PLANNED {
        for profile in [RunProfile::Quick, RunProfile::Standard, RunProfile::Full] {
            let expansion = expand(id, &PlanChoice { profile, ..PlanChoice::default() }, &ours());
            assert!(!expansion.cells.is_empty(), "{id}");
            assert!(expansion.expected_seconds() > 1.0, "{id}");
        }
    }
}

#[test]
fn the_standard_profiles_of_all_four_studies_take_at_most_ninety_minutes_with_our_subjects() {
    let choice = PlanChoice { profile: RunProfile::Standard, ..PlanChoice::default() };
    let seconds: f64 = PLANNED.iter().map(|id| expand(id, &choice, &ours()).expected_seconds()).sum();
    assert!(seconds < 5400.0, "{seconds}");
    let quick: Vec<f64> =
        PLANNED.iter().map(|id| expand(id, &PlanChoice::default(), &ours()).expected_seconds()).collect();
    assert!(quick.iter().all(|seconds| *seconds < 600.0), "{quick:?}");
}

#[test]
fn the_real_server_is_measured_where_it_is_named_and_then_alone() {
    let words = ["stentor".to_owned(), "--served".to_owned()];
    let all = [ours(), roster::served(&words)].concat();
    let stacks = |subjects: &[&str], profile| {
        let subjects = subjects.iter().map(|name| (*name).to_owned()).collect();
        let expansion = expand("cai-2009", &PlanChoice { profile, subjects, ..PlanChoice::default() }, &all);
        let stacks: BTreeSet<String> = expansion.cells.iter().map(|cell| cell.stack.clone()).collect();
        (stacks.into_iter().collect::<Vec<_>>().join(" "), expansion.cells)
    };
    assert_eq!(stacks(&[], RunProfile::Full).0, "rust");
    assert_eq!(stacks(&["SOAP"], RunProfile::Quick).0, "rust");
    assert_eq!(stacks(&["stentor", "rust"], RunProfile::Quick).0, "rust stentor");
    let (only, cells) = stacks(&["stentor"], RunProfile::Quick);
    assert_eq!((only.as_str(), cells.len()), ("stentor", 3 * 3 * 2));
    assert!(cells.iter().all(|cell| cell.settings["own"] == "data" && cell.client.id == cell.server.id));
}

#[test]
fn the_real_server_runs_what_of_a_study_it_can_be_asked_and_the_rest_is_told_or_refused() {
    let words = ["stentor".to_owned(), "--served".to_owned()];
    let all = [ours(), roster::served(&words)].concat();
    let wish = |study: &str, subjects: &[&str], factor: Option<(&str, &str)>| {
        let subjects = subjects.iter().map(|name| (*name).to_owned()).collect();
        let mut choice = PlanChoice { profile: RunProfile::Full, subjects, ..PlanChoice::default() };
        let named =
            |(name, levels): (&str, &str)| (name.to_owned(), levels.split(',').map(str::to_owned).collect());
        choice.factors.extend(factor.map(named));
        shipped(study).expand(&choice, &all)
    };
    let whole = wish("anacleto-2012", &["stentor"], None).expect("sense");
    let count = |id: &str| whole.cells.iter().filter(|cell| cell.experiment == id).count();
    assert_eq!([count("sync"), count("pages"), count("interrupted")], [10 * 4, 4 * 3, 0]);
    assert!(
        whole.cells.iter().all(|cell| cell.settings["own"] == "data" && cell.levels["insert"] == "sqlite")
    );
    let heap = |cell: &Cell| cell.experiment != "sync" || cell.levels["heap"] == "free";
    assert!(whole.cells.iter().all(heap));
    assert_eq!(whole.not_run.iter().filter(|one| one.what.starts_with("the server itself at ")).count(), 4);
    assert_eq!(wish("nunes-2014", &["stentor"], None).expect("sense").cells.len(), 5 * 3 * 2 * 2);
    for (study, factor, why) in [
        (
            "anacleto-2012",
            Some(("page", "1024,1884")),
            "the server itself at page 1024, 1884: the server's lists",
        ),
        (
            "anacleto-2012",
            Some(("interruption", "cut")),
            "the server itself at interruption: what is kept half way",
        ),
        ("albertengo-2020", None, "the server itself: the server has no operation that sends a payload back"),
    ] {
        let refused = wish(study, &["stentor"], factor).expect_err(why).to_string();
        assert!(refused.contains(why), "{refused}");
        // Together with other subjects it is only left out.
        assert!(!wish(study, &["stentor", "rust"], factor).expect("sense").cells.is_empty(), "{study}");
    }
    let some = wish("anacleto-2012", &["stentor"], Some(("page", "256,1024"))).expect("one is left");
    assert_eq!(some.cells.iter().filter(|cell| cell.experiment == "pages").count(), 4);
}

#[test]
fn cai_2009_has_three_protocols_three_types_and_five_sizes() {
    let choice = PlanChoice { profile: RunProfile::Standard, ..PlanChoice::default() };
    let expansion = expand("cai-2009", &choice, &ours());
    let query: Vec<&Cell> = expansion.cells.iter().filter(|cell| cell.experiment == "query").collect();
    assert_eq!(query.len(), 3 * 3 * 5);
    let one =
        query.iter().find(|cell| cell.label == "SOAP" && cell.levels["items"] == "3200").expect("there");
    assert_eq!(one.settings["items"], "3200");
    assert!(expansion.not_run.iter().any(|one| one.what.starts_with("SOAP (the paper's software)")));
}

#[test]
fn plain_php_is_asked_for_all_sizes_and_types_in_longer_profiles_and_parses_files() {
    let mut definitions = ours();
    for id in ["soap/ext-soap/php8.2", "rest+xml/plain/php8.2"] {
        let mut plain = foreign(id, &[SubjectRole::Client, SubjectRole::Server]);
        plain.ops.push(crate::subject::reference::Op::Array);
        definitions.push(plain);
    }
    let cells =
        |profile| expand("cai-2009", &PlanChoice { profile, ..PlanChoice::default() }, &definitions).cells;
    let count = |cells: &[Cell], id: &str| cells.iter().filter(|cell| cell.experiment == id).count();
    let (quick, standard) = (cells(RunProfile::Quick), cells(RunProfile::Standard));
    assert_eq!([count(&quick, "plain"), count(&standard, "plain")], [2, 2 * 3 * 5]);
    assert_eq!(count(&quick, "parsing"), 3);
    let parsed = quick.iter().find(|cell| cell.experiment == "parsing").expect("a file");
    assert_eq!((&*parsed.label, &*parsed.settings["parsing"]), ("simplexml_load_file", "file"));
}

#[test]
fn a_filter_keeps_the_levels_that_it_names_and_refuses_those_that_there_are_not() {
    let mut choice = PlanChoice { subjects: vec!["SOAP".into()], ..PlanChoice::default() };
    choice.factors.insert("type".into(), vec!["Object".into()]);
    choice.factors.insert("items".into(), vec!["200".into(), "400".into()]);
    let expansion = expand("cai-2009", &choice, &ours());
    assert_eq!(expansion.cells.iter().filter(|cell| cell.experiment == "query").count(), 2);
    choice.factors.insert("items".into(), vec!["201".into()]);
    let error = shipped("cai-2009").expand(&choice, &ours()).expect_err("no such level").to_string();
    assert!(error.contains("201") && error.contains("3200"), "{error}");
    let variants = PlanChoice { variants: vec!["code".into()], ..PlanChoice::default() };
    assert!(shipped("cai-2009").expand(&variants, &ours()).is_err());
}

#[test]
fn forks_and_samples_can_be_asked_for_and_then_so_many_must_count() {
    let samples = SampleChoice { forks: Some(1), samples: Some(2) };
    let expansion = expand("nunes-2014", &PlanChoice { samples, ..PlanChoice::default() }, &ours());
    let amount = expansion.cells[0].amount;
    assert_eq!((amount.forks, amount.forks_min, amount.samples), (1, 1, 2));
}

#[test]
fn a_client_of_others_meets_our_server_and_keeps_no_rows_unless_it_says_that_it_can() {
    let mut definitions = ours();
    definitions.push(foreign("rest+xml-dom/android-4.1.2/jdk17", &[SubjectRole::Client]));
    let choice = PlanChoice { profile: RunProfile::Quick, ..PlanChoice::default() };
    let expansion = expand("anacleto-2012", &choice, &definitions);
    let cell = expansion.cells.iter().find(|cell| cell.stack == "period").expect("there");
    assert_eq!((cell.label.as_str(), cell.server.id.as_str()), ("HTTP XML DOM", "rest+xml-dom/stentor/rust"));
    assert_eq!((cell.levels["insert"].as_str(), cell.settings["store"].as_str()), ("none", "sqlite"));
    let ours = expansion.cells.iter().find(|cell| cell.label == "HTTP XML DOM" && cell.stack == "rust");
    assert_eq!(ours.expect("there").levels["insert"], "sqlite");
    let missing = |label: &str| expansion.not_run.iter().any(|one| one.what.starts_with(label));
    assert!(!missing("HTTP XML DOM") && missing("HTTP JSON"));
    definitions.last_mut().expect("there").can.push("insert".into());
    let expansion = expand("anacleto-2012", &choice, &definitions);
    let theirs = expansion.cells.iter().find(|cell| cell.stack == "period").expect("there");
    assert_eq!((&*theirs.levels["insert"], &*theirs.settings["insert"]), ("sqlite", "sqlite"));
}

#[test]
fn other_software_is_left_to_longer_profiles_unless_it_is_named() {
    let mut definitions = ours();
    definitions.push(foreign("rest+xml-dom/other-1.0/jdk17", &[SubjectRole::Client, SubjectRole::Server]));
    let stacks = |choice: &PlanChoice| -> Vec<String> {
        let expansion = expand("anacleto-2012", choice, &definitions);
        let of_label = expansion.cells.into_iter().filter(|cell| cell.label == "HTTP XML DOM");
        let mut stacks: Vec<String> = of_label.map(|cell| cell.stack).collect();
        stacks.dedup();
        stacks
    };
    assert_eq!(stacks(&PlanChoice::default()), ["rust"]);
    let standard = PlanChoice { profile: RunProfile::Standard, ..PlanChoice::default() };
    assert_eq!(stacks(&standard), ["rust"]);
    let full = PlanChoice { profile: RunProfile::Full, ..PlanChoice::default() };
    assert_eq!(stacks(&full), ["rust", "other-1.0/jdk17"]);
    let named = PlanChoice { subjects: vec!["other-1.0".into()], ..PlanChoice::default() };
    assert_eq!(stacks(&named), ["other-1.0/jdk17"]);
}

#[test]
fn the_standard_profile_takes_the_software_that_its_plan_names() {
    let mut definitions = ours();
    for id in ["soap/zend-1/php", "soap/ext-soap/php", "soap/cxf-4.2.3/jdk17"] {
        definitions.push(foreign(id, &[SubjectRole::Client, SubjectRole::Server]));
    }
    let stacks = |profile| -> BTreeSet<String> {
        let choice = PlanChoice { profile, ..PlanChoice::default() };
        let cells = expand("cai-2009", &choice, &definitions).cells.into_iter();
        let cells = cells.filter(|cell| cell.label == "SOAP" && cell.experiment == "query");
        cells.filter(|cell| cell.stack != "rust").map(|cell| cell.stack).collect()
    };
    assert_eq!(stacks(RunProfile::Quick), ["period".to_owned()].into());
    assert_eq!(stacks(RunProfile::Standard), ["ext-soap/php".to_owned(), "period".to_owned()].into());
}

#[test]
fn a_server_that_reads_no_rows_leaves_them_to_ours() {
    let mut definitions = ours();
    definitions.push(foreign("rest+xml-dom/jdk/jdk17", &[SubjectRole::Client, SubjectRole::Server]));
    let named = PlanChoice { subjects: vec!["/jdk/".into()], ..PlanChoice::default() };
    let cells = expand("anacleto-2012", &named, &definitions).cells;
    assert!(!cells.is_empty());
    let rust = PlanChoice { subjects: vec!["rust".into()], ..PlanChoice::default() };
    let ours = expand("anacleto-2012", &rust, &definitions).cells;
    assert!(
        ours.iter().all(|cell| cell.client.id.ends_with(BUILT_IN)),
        "a half of ours does not make a subject ours"
    );
    for cell in cells {
        assert_eq!(cell.client.id, "rest+xml-dom/jdk/jdk17");
        assert_eq!(cell.server.id, format!("rest+xml-dom/{BUILT_IN}"));
    }
}

#[test]
fn a_server_that_cannot_encrypt_leaves_cells_with_tls_to_ours_and_a_client_that_cannot_has_none() {
    let halves = |roles: &[SubjectRole], can: &[&str]| -> BTreeSet<(String, String, String)> {
        let mut other = foreign("rest+json/httpurlconnection/jdk17", roles);
        other.can = can.iter().map(|one| (*one).to_owned()).collect();
        let definitions = [ours(), vec![other]].concat();
        let variants = vec!["paper".to_owned(), "modern".to_owned()];
        let choice = PlanChoice { profile: RunProfile::Full, variants, ..PlanChoice::default() };
        let cells = expand("albertengo-2020", &choice, &definitions).cells.into_iter();
        let cells = cells.filter(|cell| cell.stack == "period");
        cells.map(|cell| (cell.levels["tls"].clone(), cell.client.id, cell.server.id)).collect()
    };
    let row = |tls: &str, client: &str, server: &str| {
        let id = |half: &str| format!("rest+json/{half}");
        (tls.to_owned(), id(client), id(server))
    };
    let (theirs, ours) = ("httpurlconnection/jdk17", BUILT_IN);
    let both = [SubjectRole::Client, SubjectRole::Server];
    assert_eq!(halves(&both, &[]), [row("off", theirs, theirs)].into());
    assert_eq!(halves(&both, &["tls"]), [row("off", theirs, theirs), row("on", theirs, theirs)].into());
    let mixed = [row("off", theirs, theirs), row("on", theirs, ours)];
    assert_eq!(halves(&both, &["tls-client"]), mixed.into());
    // With a client of ours and a server of ours no foreign half would remain.
    assert_eq!(halves(&[SubjectRole::Server], &["tls-client"]), [row("off", ours, theirs)].into());
    assert_eq!(
        halves(&[SubjectRole::Server], &["tls"]),
        [row("off", ours, theirs), row("on", ours, theirs)].into()
    );
}

#[test]
fn clients_of_the_paper_meet_one_kind_of_server_where_a_plan_names_it() {
    let client = foreign("rest+json/httpurlconnection/jdk17", &[SubjectRole::Client, SubjectRole::Server]);
    let mut server = foreign("rest+json/cxf-2.7.4/jdk17", &[SubjectRole::Server]);
    let servers = |definitions: &[Definition]| -> BTreeSet<(String, String)> {
        let choice = PlanChoice { profile: RunProfile::Full, ..PlanChoice::default() };
        let cells = expand("albertengo-2020", &choice, definitions).cells.into_iter();
        let cells = cells.filter(|cell| cell.stack == "period");
        cells.map(|cell| (cell.levels.get("tls").cloned().unwrap_or_default(), cell.server.id)).collect()
    };
    let row = |tls: &str, server: &str| (tls.to_owned(), format!("rest+json/{server}"));
    let (theirs, cxf) = ("httpurlconnection/jdk17", "cxf-2.7.4/jdk17");
    assert_eq!(
        servers(&[ours(), vec![client.clone()]].concat()),
        [row("", theirs), row("off", theirs)].into()
    );
    assert_eq!(
        servers(&[ours(), vec![client.clone(), server.clone()]].concat()),
        [row("", cxf), row("off", cxf)].into()
    );
    server.can = vec!["tls-server".to_owned()];
    let mut encrypting = client;
    encrypting.can = vec!["tls-client".to_owned()];
    assert_eq!(
        servers(&[ours(), vec![encrypting, server]].concat()),
        [row("", cxf), row("off", cxf), row("on", cxf)].into()
    );
    assert!(shipped("albertengo-2020").concerns("rest+json/cxf-2.7.4/jdk17"));
}

#[test]
fn variants_choose_their_levels() {
    let levels = |variant: &str| {
        let choice = PlanChoice { variants: vec![variant.into()], ..PlanChoice::default() };
        let cells = expand("albertengo-2020", &choice, &ours()).cells;
        let mut levels: Vec<String> = cells
            .iter()
            .filter(|cell| cell.experiment == "echo")
            .map(|cell| format!("{} {}", cell.levels["connection"], cell.levels["tls"]))
            .collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    };
    assert_eq!(levels("code"), ["fresh off"]);
    assert_eq!(levels("modern"), ["kept on"]);
    assert_eq!(levels("paper"), ["fresh off", "kept off"]);
}

#[test]
fn a_limit_of_the_heap_is_for_those_that_have_one() {
    let mut definitions = ours();
    let mut android = foreign("rest+xml-dom/android-4.1.2/jdk17", &[SubjectRole::Client]);
    android.run = vec!["java".into(), "@heap".into()];
    definitions.push(android);
    let expansion = expand("anacleto-2012", &PlanChoice::default(), &definitions);
    let heaps = |stack: &str| -> Vec<&str> {
        let cells =
            expansion.cells.iter().filter(|cell| cell.label == "HTTP XML DOM" && cell.levels["poi"] == "461");
        cells.filter(|cell| cell.stack == stack).map(|cell| cell.levels["heap"].as_str()).collect()
    };
    assert_eq!((heaps("rust"), heaps("period")), (vec!["free"], vec!["16 MB UTF-16", "free"]));
}

#[test]
fn the_service_of_nunes_2014_is_repeated_by_servers_that_can_and_with_messages_that_are_whole() {
    let mut definitions = ours();
    for id in ["rest+xml/axis2-1.6.2/jdk17", "rest+xml/cxf-2.7.4/jdk17"] {
        let mut framework = foreign(id, &[SubjectRole::Client, SubjectRole::Server]);
        framework.ops.push(crate::subject::reference::Op::Sort);
        framework.can =
            if id.contains("axis2") { vec!["buffering".into(), "service".into()] } else { Vec::new() };
        definitions.push(framework);
    }
    let choice = PlanChoice { profile: RunProfile::Standard, ..PlanChoice::default() };
    let cells = expand("nunes-2014", &choice, &definitions).cells;
    let of = |label: &str| -> BTreeSet<(String, String)> {
        let cells = cells.iter().filter(|cell| cell.label == label);
        cells.map(|cell| (cell.levels["service"].clone(), cell.levels["buffering"].clone())).collect()
    };
    let pair = |service: &str, buffering: &str| (service.to_owned(), buffering.to_owned());
    let whole = [pair("1 sort", "whole messages"), pair("200 sorts", "whole messages")];
    assert_eq!(of("Axis2"), [&[pair("1 sort", "unchanged")], &whole[..]].concat().into_iter().collect());
    assert_eq!(of("CXF"), [pair("1 sort", "unchanged")].into());
    // It has nothing to buffer, since it never streams.
    assert_eq!(of("REST+XML"), [pair("1 sort", "unchanged")].into());
    let repeated = cells.iter().find(|cell| cell.levels["service"] == "200 sorts").expect("a service");
    assert_eq!(repeated.settings["service"], "200");
    let sorted_once = cells.iter().find(|cell| cell.levels["service"] == "1 sort").expect("a service");
    assert_eq!((repeated.amount.warmup, sorted_once.amount.warmup), (10, 50));
    assert!(repeated.fork_seconds > 2.0 * sorted_once.fork_seconds);
}

#[test]
fn the_phone_of_anacleto_2012_is_a_share_of_a_processor_for_the_client_alone() {
    let mut definitions = ours();
    let mut client = foreign("rest+xml-dom/android-4.1.2/jdk17", &[SubjectRole::Client]);
    client.run = vec!["java".into(), "@heap".into()];
    let mut server = foreign("rest+xml-dom/tomcat-7.0.29/jdk17", &[SubjectRole::Server]);
    server.can.push("store".into());
    definitions.extend([client, server]);
    let choice = PlanChoice { profile: RunProfile::Standard, ..PlanChoice::default() };
    let cells = expand("anacleto-2012", &choice, &definitions).cells;
    let of = |stack: &str| -> BTreeSet<String> {
        let cells = cells.iter().filter(|cell| cell.label == "HTTP XML DOM" && cell.stack == stack);
        cells.map(|cell| cell.levels["cpu"].clone()).collect()
    };
    let levels = |levels: &[&str]| levels.iter().map(|level| (*level).to_owned()).collect::<BTreeSet<_>>();
    // Only a Java machine can do without its compiler.
    assert_eq!(of("rust"), levels(&["whole", "10 %"]));
    assert_eq!(of("period"), levels(&["whole", "10 %", "10 % interpreted"]));
    let phone =
        cells.iter().find(|cell| cell.levels.get("cpu").is_some_and(|cpu| cpu.ends_with("interpreted")));
    let phone = phone.expect("a phone");
    assert_eq!((phone.cpu_percent, phone.cpu_of), (Some(10), CpuOf::Client));
    let compiling = cells.iter().find(|cell| cell.stack == "period" && cell.levels["cpu"] == "10 %");
    let exchanges = |cell: &Cell| (cell.amount.samples, cell.amount.paced(), cell.amount.at_share());
    assert_eq!((exchanges(phone), compiling.map(exchanges)), ((1, 1, 0), Some((3, 3, 2))));
    assert_eq!(phone.server.id, "rest+xml-dom/tomcat-7.0.29/jdk17");
    assert!(
        cells
            .iter()
            .all(|cell| cell.levels.get("cpu").is_none_or(|cpu| cpu == "whole")
                || cell.levels["heap"] != "8 MB")
    );
    let options = phone.client.for_cell(&phone.settings).run;
    assert!(options.contains(&"-Xint".to_owned()), "{options:?}");
}

#[test]
fn the_full_profile_of_albertengo_2020_sends_ten_times_five_hundred_messages_one_each_500_ms() {
    let pushed = roster::pushed(&["stentor".to_owned(), "speak".to_owned()]);
    let choice = PlanChoice { profile: RunProfile::Full, ..PlanChoice::default() };
    let cells = expand("albertengo-2020", &choice, &[ours(), pushed].concat()).cells;
    let labels: BTreeSet<&str> = cells.iter().map(|cell| cell.label.as_str()).collect();
    assert!(["SOAP", "REST", "GCM", "FCM"].iter().all(|label| labels.contains(label)), "{labels:?}");
    let as_sent = |cell: &Cell| (cell.amount.forks, cell.amount.samples, cell.interval_ns);
    assert!(cells.iter().all(|cell| as_sent(cell) == (10, 500, 500_000_000)));
}

#[test]
fn a_study_is_concerned_with_the_subjects_that_fill_its_places() {
    let plan = shipped("nunes-2014");
    assert!(plan.concerns("rest+xml/axis2-1.6.2/jdk17") && plan.concerns("soap/cxf-4.2.3/jdk17"));
    assert!(!plan.concerns("xmlrpc/apache-3.1.3/jdk17") && !plan.concerns("rest+xml/other/jdk17"));
}

#[test]
fn push_services_have_a_gateway_and_cells_with_the_delay_of_the_paper_from_the_standard_profile_on() {
    let pushed = roster::pushed(&["stentor".to_owned(), "speak".to_owned()]);
    let cells = |profile, subjects: &[&str]| {
        let subjects = subjects.iter().map(|subject| (*subject).to_owned()).collect();
        let choice = PlanChoice { profile, subjects, ..PlanChoice::default() };
        expand("albertengo-2020", &choice, &[ours(), pushed.clone()].concat()).cells
    };
    let services = ["GCM", "FCM"];
    for cell in cells(RunProfile::Full, &services) {
        let (gateway, client) = (cell.gateway.as_ref().expect("a gateway"), &cell.client);
        assert!(gateway.id == client.id && cell.server.id == client.id, "{}", cell.label_text());
        assert!(
            !cell.settings.contains_key("connection"),
            "both connections are kept: {}",
            cell.label_text()
        );
        let delay = ["provider", "provider_up_ms"].map(|name| cell.settings.get(name).map(String::as_str));
        let expected = match cell.label.as_str() {
            "GCM" => "155",
            _ => "280",
        };
        let has_delay = cell.levels["provider_delay"] == "paper";
        assert!(!has_delay || delay == [Some("paper"), Some(expected)], "{}", cell.label_text());
    }
    let mut smack = foreign("gcm/smack-4.2.1/jdk17", &[SubjectRole::Server]);
    (smack.ops, smack.can) = (vec![crate::subject::reference::Op::Echo], vec!["tls".into()]);
    let all = [ours(), pushed.clone(), vec![smack]].concat();
    let period = expand("albertengo-2020", &PlanChoice::default(), &all).cells;
    let period: Vec<&Cell> =
        period.iter().filter(|cell| cell.label == "GCM" && cell.stack == "period").collect();
    assert_eq!(period.len(), 2, "its payloads, in the paper's variant alone");
    let halves = |cell: &Cell| {
        [&cell.client, cell.gateway.as_ref().expect("ours"), &cell.server].map(|one| one.id.clone())
    };
    assert_eq!(halves(period[0]), ["gcm/stentor/rust", "gcm/stentor/rust", "gcm/smack-4.2.1/jdk17"]);
    // Two payloads in the paper's variant, later four in three variants; that one also without TLS, with the delay, and with a WAN.
    assert_eq!(cells(RunProfile::Quick, &services).len(), 2 * 2);
    assert_eq!(cells(RunProfile::Standard, &services).len(), 2 * 4 * (3 + 1 + 1 + 1));
    let far = cells(RunProfile::Standard, &["FCM"]).into_iter().find(|cell| cell.levels["hop"] == "WAN");
    assert_eq!(far.expect("a hop").gateway_link.as_deref(), Some("wan"));
    assert!(cells(RunProfile::Full, &["REST", "SOAP"]).iter().all(|cell| cell.gateway.is_none()));
}
