//! Features of cai-2009, tested on real subjects by the command, and their use in a run.

use crate::process::{run, run_json};
use serde_json::{Value, json};
use stentor_lab::probes::{ProbeAnswer, ProbeWord, Probed};

fn verdict(claims: &Value, id: &str) -> Value {
    let claim = claims["claims"].as_array().unwrap().iter().find(|claim| claim["id"] == id);
    claim.unwrap()["verdict_ours"].clone()
}

#[test]
fn both_tables_stand_beside_what_every_probe_said() {
    let (code, report) = run_json(&["lab", "probe", "cai-2009"]);
    assert_eq!((code, &report["ok"], &report["study"]), (0, &json!(true), &json!("cai-2009")), "{report}");
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 36);
    let probes = |feature: &str, subject: &str| {
        let row = rows.iter().find(|row| row["feature"] == feature && row["subject"] == subject).unwrap();
        (row["paper"].clone(), row["probes"].as_array().unwrap().clone())
    };
    let (paper, structs) = probes("Structs and arrays", "REST");
    assert_eq!((paper, &structs[0]["answer"]), (json!("NO"), &json!("YES")));
    let (_, security) = probes("Security", "SOAP");
    let tls = security.iter().find(|one| one["id"] == "tls").unwrap();
    assert_eq!((&tls["answer"], &tls["kind"]), (&json!("YES"), &json!("measured")), "{tls}");
    let (_, upkeep) = probes("Extensibility/Maintainability", "SOAP");
    let kinds: Vec<&str> = upkeep.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["interviews", "interviews", "proxy", "proxy"]);
}

#[test]
fn people_read_the_paper_beside_the_probes_and_what_was_seen() {
    let text = String::from_utf8(run(&["lab", "probe", "cai-2009"]).stdout).unwrap();
    assert!(text.contains("Short learning curve") && text.contains("[proxy]"), "{text}");
    assert!(text.contains("system.listMethods names lab.echo"), "{text}");
}

#[test]
fn without_sources_lines_are_not_counted_and_the_rest_is_told() {
    let nowhere = tempfile::tempdir().unwrap();
    let (code, report) =
        run_json(&["lab", "probe", "cai-2009", "--subjects", nowhere.path().to_str().unwrap()]);
    let probes = report["rows"].as_array().unwrap().iter().flat_map(|row| row["probes"].as_array().unwrap());
    let answers: Vec<&Value> = probes.filter(|one| one["id"] == "lines").map(|one| &one["answer"]).collect();
    assert_eq!((code, answers), (0, vec![&json!("not counted"); 3]));
}

#[test]
fn a_run_keeps_what_probes_said_and_its_claims_go_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let small =
        ["lab", "run", "cai-2009", "--subject", "rust", "--forks", "1", "--samples", "2", "--out", out];
    let cell = ["--factor", "items=200", "--factor", "type=Int", "--link", "none"];
    let gate = ["--gate-load", "10000", "--gate-lateness-ms", "60000"];
    let (code, run_report) = run_json(&[&small[..], &cell, &gate].concat());
    assert_eq!(code, 0, "{run_report}");
    let probed = Probed::read(directory.path()).unwrap().unwrap();
    assert!(probed.have_all_run() && probed.probes.len() > 60);
    let seen = probed.server.iter().filter(|one| one.answer == ProbeAnswer::Word(ProbeWord::Yes)).count();
    assert!(seen > 12, "{:?}", probed.server);
    let (_, claims) = run_json(&["lab", "claims", "cai-2009", "--record", out]);
    let (_, report) = run_json(&["lab", "report", out]);
    for judged in [&claims, &report] {
        for id in ["C004-10", "C004-12"] {
            assert_eq!(verdict(judged, id), json!("does_not_hold"), "{id} {judged}");
        }
        // The missing description of our face proves nothing about REST.
        assert_eq!(verdict(judged, "C004-13"), json!("not_testable"), "{judged}");
    }
    // The answers of the interviewed belong to the paper, and a proxy is not a measurement.
    let own = ["C004-9", "C004-14", "C004-15"].map(|id| verdict(&claims, id));
    assert_eq!(own, ["not_testable"; 3]);
    std::fs::write(directory.path().join("probes.json"), "{}").unwrap();
    assert_eq!(run_json(&["lab", "report", out]).0, 2);
}

/// Describes the binary as a foreign subject.
fn definition(directory: &std::path::Path, dialect: &str, roles: &str) -> String {
    let file = directory.join("subject.toml");
    let run = format!("{:?}, \"lab\", \"subject\", \"speak\", {dialect:?}", env!("CARGO_BIN_EXE_stentor"));
    let text = format!(
        "id = \"{dialect}/mine/rust\"\nops = [\"echo\"]\nroles = [{roles}]\nrun = [{run}]\ncan = [\"tls\"]\n"
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_subject_of_somebody_else_is_asked_what_an_exchange_can_tell() {
    let directory = tempfile::tempdir().unwrap();
    let file = definition(directory.path(), "soap", "\"server\"");
    let (code, report) = run_json(&["lab", "probe", "cai-2009", "--definition", &file]);
    assert_eq!((code, &report["subjects"][0]["id"]), (0, &json!("soap/mine/rust")), "{report}");
    let answers = |id: &str| {
        let probes = report["subjects"][0]["probes"].as_array().unwrap();
        probes.iter().find(|one| one["id"] == id).map(|one| one["answer"].clone())
    };
    for id in ["structs", "named", "contract", "tools", "laughs", "tls"] {
        assert_eq!(answers(id), Some(json!("YES")), "{id} {report}");
    }
    assert_eq!((answers("types"), answers("upkeep-for")), (Some(json!("not probed")), None));
}

#[test]
fn who_cannot_be_probed_is_told_why() {
    let directory = tempfile::tempdir().unwrap();
    for (dialect, roles, code, why) in [
        ("soap", "\"client\"", 2, "is a client, and probes call servers"),
        (
            "grpc",
            "\"server\"",
            2,
            "features are probed of SOAP 1.1, XML-RPC and REST with XML or JSON, not of grpc",
        ),
    ] {
        let file = definition(directory.path(), dialect, roles);
        let (ended, report) = run_json(&["lab", "probe", "cai-2009", "--definition", &file]);
        assert_eq!(ended, code, "{report}");
        assert!(report["error"].as_str().unwrap().contains(why), "{report}");
    }
}

#[test]
fn the_servers_own_faces_refuse_harm_and_take_several_requests_where_their_protocol_has_them() {
    let (code, report) = run_json(&["lab", "probe", "cai-2009", "--subject", "stentor"]);
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report}");
    let answer = |subject: &str, probe: &str| {
        let subjects = report["subjects"].as_array().unwrap();
        let one = subjects.iter().find(|one| one["id"] == subject).unwrap();
        let probes = one["probes"].as_array().unwrap();
        probes.iter().find(|one| one["id"] == probe).unwrap()["answer"].clone()
    };
    let faces = ["soap/server/stentor", "xmlrpc/server/stentor", "rest+json/server/stentor"];
    for probe in ["structs", "strict", "contract", "tools", "depth", "size"] {
        assert_eq!(
            faces.map(|face| answer(face, probe)),
            [(); 3].map(|()| json!("YES")),
            "{probe}: {report}"
        );
    }
    for probe in ["multicall", "transport"] {
        assert_eq!(
            faces.map(|face| answer(face, probe)),
            ["YES", "YES", "NO"].map(Value::from),
            "{probe}: {report}"
        );
    }
    assert_eq!(faces.map(|face| answer(face, "named")), ["YES", "NO", "NO"].map(Value::from), "{report}");
    assert_eq!(faces.map(|face| answer(face, "customized")), [(); 3].map(|()| json!("NO")), "{report}");
    assert_eq!(faces.map(|face| answer(face, "laughs")), ["YES", "YES", "not probed"].map(Value::from));
    assert!(answer(faces[0], "overhead").as_f64() > answer(faces[2], "overhead").as_f64(), "{report}");
}
