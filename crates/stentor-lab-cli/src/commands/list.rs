//! `stentor lab list`: the studies, links and claims of the laboratory.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::process::ExitCode;
use stentor_lab::claims::{Dossier, STUDIES};
use stentor_lab::plan::{PlanChoice, RunProfile, StudyPlan};
use stentor_lab::runner::roster;
use stentor_rig::link::PROFILES;
use stentor_terminal::output::{Output, table};

/// List studies, links or claims
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab list
  stentor lab list links
  stentor lab list claims --json

Subjects are listed by stentor lab subject list.")]
pub(crate) struct LabListArgs {
    /// Kind of things to list
    #[arg(value_enum, default_value = "studies")]
    what: ListedKind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ListedKind {
    /// Published studies, with the duration of each profile with our subjects
    Studies,
    /// Profiles of links
    Links,
    /// Claims of the papers
    Claims,
}

impl LabListArgs {
    /// Prints the list.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.what {
            ListedKind::Studies => studies(output)?,
            ListedKind::Links => links(output)?,
            ListedKind::Claims => claims(output)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn studies(output: Output) -> anyhow::Result<()> {
    let mut listed: Vec<Value> = Vec::new();
    for id in STUDIES {
        let Some(dossier) = Dossier::open(id)? else { continue };
        let (title, year) = (&dossier.paper().title, dossier.paper().year);
        let mut object = json!({ "id": id, "title": title, "year": year });
        if let Some(plan) = StudyPlan::shipped(id)?.filter(|plan| plan.campaigns.is_none()) {
            for profile in [RunProfile::Quick, RunProfile::Standard, RunProfile::Full] {
                let choice = PlanChoice { profile, ..PlanChoice::default() };
                let expansion = plan.expand(&choice, &roster::ours(&[]))?;
                object[profile.word()] = json!({
                    "cells": expansion.cells.len(),
                    "expected_seconds": expansion.expected_seconds(),
                });
            }
        }
        listed.push(object);
    }
    output.result(&json!({ "studies": listed }), || {
        let minutes = |one: &Value, profile: &str| {
            let seconds = one[profile]["expected_seconds"].as_f64();
            seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{:.0} min", (seconds / 60.0).ceil()))
        };
        let rows = listed.iter().map(|one| {
            let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let times = ["quick", "standard", "full"].map(|profile| minutes(one, profile));
            let [quick, standard, full] = times;
            [word("id"), quick, standard, full, word("title")]
        });
        table(["study", "quick", "standard", "full", "title"], rows)
    })
}

fn links(output: Output) -> anyhow::Result<()> {
    let objects: Vec<Value> = PROFILES
        .iter()
        .map(|profile| {
            json!({
                "name": profile.name,
                "up_mbit_s": profile.up_bits_per_second as f64 / 1e6,
                "down_mbit_s": profile.down_bits_per_second as f64 / 1e6,
                "round_trip_ms": profile.round_trip_us as f64 / 1e3,
                "jitter_ms": profile.jitter_us as f64 / 1e3,
                "source": profile.source,
            })
        })
        .collect();
    output.result(&json!({ "links": objects }), || {
        let rows = objects.iter().map(|one| {
            let number = |name: &str| one[name].to_string();
            let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            [
                word("name"),
                number("up_mbit_s"),
                number("down_mbit_s"),
                number("round_trip_ms"),
                word("source"),
            ]
        });
        table(["link", "up Mbit/s", "down Mbit/s", "round trip ms", "source"], rows)
    })
}

fn claims(output: Output) -> anyhow::Result<()> {
    let mut listed = Vec::new();
    for id in STUDIES {
        let Some(dossier) = Dossier::open(id)? else { continue };
        for one in dossier.judge(None)? {
            let statement = one.statement;
            listed.push(json!({ "id": statement.id, "study": id, "text": statement.text }));
        }
    }
    output.result(&json!({ "claims": listed }), || {
        let rows = listed.iter().map(|one| {
            let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            [word("id"), word("study"), word("text")]
        });
        table(["claim", "study", "statement"], rows)
    })
}
