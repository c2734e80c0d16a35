//! Files and lines that the laboratory reads: captures, logs of phones, readings of meters, traces, figures, checks, plans. Any input ends
//! in a value or in an error.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::net::{IpAddr, Ipv4Addr};
use stentor_lab::claims::expression::{Binding, ClaimExpression, Term};
use stentor_lab::claims::figures::Figures;
use stentor_lab::energy::meter::{self, TimeUnit};
use stentor_lab::energy::pcap::CaptureContents;
use stentor_lab::energy::trace::PacketTrace;
use stentor_lab::energy::{imported, phone_log};
use stentor_lab::plan::StudyPlan;
use stentor_lab::record::ForkRecord;
use stentor_lab::subject::protocol::Report;

const DEVICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));

fn capture(bytes: &[u8]) {
    if let Ok(file) = CaptureContents::read(bytes) {
        let trace = file.trace(file.first_sender().unwrap_or(DEVICE));
        let (before, after) = trace.split_at(trace.span_ns().map_or(0, |(first, _)| first));
        assert_eq!(before.packets().len() + after.packets().len(), trace.packets().len());
    }
}

fn text(kind: u8, text: &str) {
    match kind % 8 {
        0 => drop(phone_log::read(text)),
        1 => drop(imported::read(text, "a file")),
        2 => drop(meter::parse(text, TimeUnit::Milliseconds)),
        3 => drop(PacketTrace::parse(text)),
        4 => drop(Figures::parse(text)),
        5 => drop((ClaimExpression::parse(text), Term::parse(text), Binding::parse_list(text))),
        6 => drop(StudyPlan::parse(text)),
        _ => drop((serde_json::from_str::<ForkRecord>(text), serde_json::from_str::<Report>(text))),
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, rest)) = input.split_first() else { return };
    if kind % 9 == 8 {
        return capture(rest);
    }
    if let Ok(content) = std::str::from_utf8(rest) {
        text(*kind, content);
    }
});
