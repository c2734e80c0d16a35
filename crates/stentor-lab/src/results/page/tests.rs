use super::super::tests::study;
use super::super::{Remarks, Results, markdown, sheet};
use super::*;
use crate::claims::ClaimVerdict;
use crate::energy::{EnergyKind, EnergyOrigin, EnergySide, EnergyValue};
use crate::record::ForkRecord;

fn account(records: Vec<ForkRecord>) -> Account {
    let results = Results::of(records).expect("one study");
    let remarks = Remarks {
        differences: vec!["PHP 8.2 instead of <5.2>".into()],
        not_here: vec![("tables 3 to 5".into(), "Zend was not supplied".into())],
        command: "stentor lab run cai-2009 --out results".into(),
        directory: "results".into(),
        ..Remarks::default()
    };
    Account::of(results, remarks).expect("told")
}

fn with_energy(mut records: Vec<ForkRecord>) -> Vec<ForkRecord> {
    for record in &mut records {
        let origin = EnergyOrigin::new(EnergyKind::Modelled, "wifi", "none");
        record.energy = vec![EnergyValue::of("radio", EnergySide::Client, 1.5, 2.0, &origin)];
    }
    records
}

#[test]
fn the_page_needs_nothing_else_and_lets_no_text_in_as_markup() {
    let mut records = with_energy(study(3, 8));
    records[0].valid = false;
    records[0].invalid_reason = "the link was <late>".into();
    let page = page(&account(records));
    for part in [
        "<svg",
        "<title>",
        "<desc>",
        "id=\"ratios-",
        "href=\"#ratios-",
        "the link was &lt;late&gt;",
        "PHP 8.2 instead of &lt;5.2&gt;",
        "Zend was not supplied",
        "stentor lab run cai-2009",
    ] {
        assert!(page.contains(part), "{part} is not there");
    }
    for part in ["<script", "<link", "<img", "src=", "url(", "@import", "http://", "https://", "<late>"] {
        let rest = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!rest.contains(part), "{part} is there");
    }
}

#[test]
fn verdicts_come_first_and_every_drawing_can_be_reached() {
    let account = account(with_energy(study(3, 8)));
    let page = page(&account);
    let verdicts = page.find("id=\"verdicts\"").expect("verdicts");
    for plot in &account.plots {
        let place = page.find(&format!("id=\"{}\"", plot.id)).expect("drawn");
        assert!(verdicts < place && page.contains(&format!("href=\"#{}\"", plot.id)), "{}", plot.id);
    }
    let ids: Vec<&str> = account.plots.iter().map(|plot| plot.id.as_str()).collect();
    for prefix in ["ratios-", "size-", "spread-", "phases", "bytes", "costs", "energy-"] {
        assert!(ids.iter().any(|id| id.starts_with(prefix)), "{prefix} is not in {ids:?}");
    }
}

#[test]
fn energy_says_of_which_kind_it_is_on_the_picture() {
    let account = account(with_energy(study(2, 8)));
    let energy = account.plots.iter().find(|plot| plot.id.starts_with("energy")).expect("drawn");
    assert!(energy.svg.contains(">modelled</text>"), "{}", energy.svg);
}

#[test]
fn what_was_not_measured_is_left_out_and_said() {
    let mut records = study(2, 8);
    for record in &mut records {
        record.bytes = None;
        record.cpu = crate::record::Sides::default();
        record.mem = crate::record::Sides::default();
        record.latency.retain(|phase, _| phase == "rtt");
    }
    let account = account(records);
    let ids: Vec<&str> = account.plots.iter().map(|plot| plot.id.as_str()).collect();
    assert!(!ids.iter().any(|id| ["bytes", "costs", "phases"].contains(id)), "{ids:?}");
    let page = page(&account);
    for part in ["bytes on the wire", "no frames were captured", "processor time", "energy"] {
        assert!(page.contains(part), "{part} is not there");
    }
}

#[test]
fn records_without_any_figure_still_make_a_page() {
    let mut records = study(1, 8);
    for record in &mut records {
        record.latency.clear();
        record.bytes = None;
        record.outcome = "out of memory".into();
    }
    let page = page(&account(records));
    assert!(page.contains("out of memory") && page.contains("Verdicts"));
}

#[test]
fn a_study_of_ones_own_has_a_page_without_verdicts() {
    let mut records = study(2, 8);
    records.iter_mut().for_each(|record| record.study = "my-study".into());
    let account = account(records);
    let page = page(&account);
    assert!(account.verdicts.is_none() && !page.contains("id=\"verdicts\"") && page.contains("id=\"ratios-"));
}

#[test]
fn the_same_figures_are_there_as_markdown_and_as_csv() {
    let account = account(with_energy(study(2, 8)));
    let text = markdown(&account);
    for part in [
        "## Verdicts",
        "## Every cell",
        "## Phases",
        "## Bytes of an exchange",
        "## Processor time and memory of each side",
        "## Energy",
        "| modelled | wifi |",
        "## Effects",
        "## Not tested here",
        "C004-1",
    ] {
        assert!(text.contains(part), "{part} is not there");
    }
    let sheet = sheet(&account.results);
    let mut reader = csv::Reader::from_reader(sheet.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().expect("one width");
    // One line for the cell and one for each of two forks.
    let medians = rows.iter().filter(|row| &row[9] == "rtt_p50").count();
    assert_eq!(medians, 45 * 3);
    for figure in [
        "phase_client_deser",
        "bytes_markup",
        "bytes_payload",
        "client_memory",
        "server_cpu",
        "energy_client_radio",
    ] {
        assert_eq!(rows.iter().filter(|row| &row[9] == figure).count(), 45 * 3, "{figure}");
    }
    let mut energy = rows.iter().filter(|row| row[9].starts_with("energy"));
    assert!(energy.all(|row| (&row[16], &row[17]) == ("modelled", "wifi")), "each says its kind");
}

#[test]
fn raw_samples_are_told_of_where_they_are_and_not_where_they_were_left_behind() {
    let mut account = account(study(1, 8));
    account.results.records[0].raw = vec![crate::record::Raw::default()];
    assert!(!page(&account).contains("raw samples lie"));
    account.remarks.raw_files = 2;
    assert!(page(&account).contains("2 files of raw samples lie beside it"));
}

#[test]
fn records_without_times_make_a_report_that_has_none_and_says_why() {
    let mut records = study(3, 8);
    for record in &mut records {
        record.env.emulated = "built for aarch64, and the kernel says x86_64".into();
        record.forget_times();
    }
    let account = account(records);
    let (page, markdown) = (page(&account), markdown(&account));
    for text in [&page, &markdown] {
        assert!(text.contains("not timed: the processor is emulated"), "{text}");
        assert!(text.contains("built for aarch64, and the kernel says x86_64"), "{text}");
        assert!(!text.contains("HdrHistogram") && !text.contains("no meter"), "{text}");
    }
    let ids: Vec<&str> = account.plots.iter().map(|plot| plot.id.as_str()).collect();
    assert_eq!(ids, ["bytes"], "a drawing of the paper's times alone is none of ours");
    let figures = sheet(&account.results);
    let is_of_bytes = |line: &str| line.contains(",bytes_") || line.contains(",published,");
    assert!(figures.lines().skip(1).all(is_of_bytes), "{figures}");
    let verdicts = account.verdicts.as_ref().expect("a study with claims");
    let timed =
        verdicts.claims.iter().filter(|one| one.judged.statement.checks.join(" ").contains("latency"));
    let timed_verdicts: Vec<ClaimVerdict> = timed.map(|one| one.period.verdict).collect();
    assert!(
        !timed_verdicts.is_empty() && timed_verdicts.iter().all(|one| *one == ClaimVerdict::NotTestable),
        "{timed_verdicts:?}"
    );
}

#[test]
fn a_report_of_which_a_part_is_not_timed_says_how_much() {
    let mut records = study(2, 8);
    let all = records.len();
    records[0].env.emulated = "built for aarch64".into();
    records[0].forget_times();
    let sentence = Results::of(records).expect("one study").not_timed();
    assert_eq!(sentence, Some(format!("1 of {all} forks are not timed: the processor is emulated")));
    assert_eq!(Results::of(study(1, 8)).expect("one study").not_timed(), None);
}

#[test]
fn a_figure_of_the_paper_has_all_systems_published_and_measured_and_its_values_as_text() {
    let mut account = account(study(3, 8));
    let figure = account.plots.iter().find(|plot| plot.id == "figure-3").expect("drawn");
    for system in ["SOAP", "REST", "XML-RPC"] {
        assert!(figure.svg.contains(&format!(">{system}</text>")), "{}", figure.svg);
        let rows = figure.values.rows.iter().filter(|row| row[1] == system);
        let rows: Vec<&Vec<String>> = rows.collect();
        assert_eq!(rows.len(), 5);
        assert!(rows.iter().all(|row| row[2] != "–" && row[3].contains('[')), "{rows:?}");
    }
    // Table 3 to 5: the mean of 0.197, 0.1946 and 0.2288 seconds.
    assert_eq!(figure.values.rows[0][..3], ["200", "SOAP", "0.207"].map(str::to_owned));
    assert!(!markdown(&account).contains(".svg"), "without a folder there is no file");
    account.remarks.figures = "cai-2009".into();
    let text = markdown(&account);
    assert!(text.contains("](cai-2009/figure-3.svg)\n\n<details><summary>Values</summary>\n\n|"), "{text}");
}

#[test]
fn a_verdict_is_a_line_with_both_sides_and_its_details_are_folded() {
    let text = markdown(&account(study(3, 8)));
    let claim = text.split("### ").find(|part| part.starts_with("C004-3:")).expect("a claim");
    let (lines, details) = claim.split_once("\n<details><summary>").expect("folded");
    let line = lines.lines().find(|line| line.starts_with("- the paper's own data: ")).expect("a line");
    assert!(line.contains("**holds**: XML-RPC > 1.5 × max of SOAP, REST in 5 of 5 cells"), "{line}");
    assert!(details.contains('“') && details.trim_end().ends_with("</details>"), "{details}");
}

#[test]
fn a_run_beside_another_keeps_its_own_figures_and_is_in_the_tally() {
    let mut main = account(study(3, 8));
    let alone = markdown(&main);
    main.beside = vec![("A second run".to_owned(), account(study(2, 9)))];
    let text = markdown(&main);
    let (own, other) = text.split_once("## A second run").expect("a part of its own");
    assert!(own.contains("| measured: period software, A second run |"), "{own}");
    assert!(other.contains("<details><summary>Every cell</summary>\n\n| part |"), "{other}");
    assert!(!other.contains("PHP 8.2 instead of"), "a remark on the study stands once");
    let cells = |text: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("| query latency")).collect();
        lines.join("\n")
    };
    assert_eq!(cells(own), cells(&alone), "nothing is pooled");
}

#[test]
fn facts_of_the_machine_that_a_record_lacks_are_said_to_be_not_recorded() {
    let mut records = study(2, 8);
    let text = markdown(&account(records.clone()));
    for fact in ["processor model", "hypervisor", "steal time of a fork, at most", "compiler"] {
        assert!(text.contains(&format!("| {fact} | not recorded |")), "{fact}: {text}");
    }
    assert!(text.contains("The processor time of the laboratory itself was not recorded."), "{text}");
    for record in &mut records {
        record.env.hypervisor = "KVMKVMKVM".into();
        record.instrument.steal_percent = Some(0.25);
        record.instrument.late_pages_percent = Some(1.5);
        record.instrument.cpu_ns = 60_000_000;
        record.instrument.wall_ns = 3_000_000_000;
    }
    let text = markdown(&account(records));
    assert!(text.contains("| hypervisor | KVMKVMKVM |"), "{text}");
    assert!(text.contains("| steal time of a fork, at most | 0.25 % |"), "{text}");
    assert!(text.contains("| memory taken by the host in a fork, at most | 1.5 % |"), "{text}");
    // 60 ms over 60 exchanges, and of two processors for three seconds.
    assert!(text.contains("| query latency (Zend) | 90 | 1 | "), "{text}");
    assert!(text.contains(" | 1 | 0 | – |"), "{text}");
}
