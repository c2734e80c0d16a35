//! The composition of an exchange's bytes: layers around the payload.

use super::metric::captured;
use crate::record::{DirectionBytes, ForkRecord};

/// Display names of the layers, the outermost first.
pub(super) const NAMES: [&str; 5] = [
    "opening and closing",
    "IP and TCP headers",
    "HTTP headers and framing",
    "markup of the format",
    "payload",
];
/// Their names in data files.
pub(super) const IDS: [&str; 5] =
    ["bytes_opening", "bytes_headers", "bytes_framing", "bytes_markup", "bytes_payload"];

/// Splits the bytes of a whole exchange into layers. `payload` is the known size of its content; without it, the whole body counts as
/// markup.
pub(super) fn of(record: &ForkRecord, payload: Option<f64>) -> Option<[f64; 5]> {
    let (bytes, exchanges) = captured(record)?;
    let sum = |of: fn(&DirectionBytes) -> u64| (of(&bytes.up) + of(&bytes.down)) as f64;
    let handshake = bytes.handshake.ip as f64;
    let headers =
        sum(|one| one.ip) - sum(|one| one.tcp_payload) - (handshake - bytes.handshake.tcp_payload as f64);
    let framing = sum(|one| one.tcp_payload) - sum(|one| one.app) - bytes.handshake.tcp_payload as f64;
    let body = sum(|one| one.app);
    let counted = Some(sum(|one| one.payload)).filter(|payload| *payload > 0.0);
    let payload = counted.or_else(|| Some(payload? * exchanges)).unwrap_or_default();
    // A format may encode numbers in fewer bytes than they have digits.
    let payload = if counted.is_some() { payload } else { payload.min(body) };
    let parts = [handshake, headers, framing, body - payload, payload];
    Some(parts.map(|part| part.max(0.0) / exchanges))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::payload::Payloads;
    use super::super::tests::record;
    use super::super::{Metric, Results};
    use super::*;
    use crate::record::{PhaseLatency, phase};
    use crate::statistics::invented::Invented;

    /// A fork of anacleto-2012 without counted payload.
    fn points(experiment: &str, levels: &[(&str, &str)]) -> ForkRecord {
        let mut record = record("HTTP JSON", "Int", "250", 1, 5.0, &mut Invented::new(1));
        record.study = "anacleto-2012".into();
        record.experiment = experiment.into();
        record.cell = levels.iter().map(|(name, level)| ((*name).into(), (*level).into())).collect();
        let bytes = record.bytes.as_mut().expect("counted");
        (bytes.up.payload, bytes.down.payload) = (0, 0);
        bytes.down.app = 60 * 229_000;
        bytes.down.tcp_payload = 60 * 230_000;
        bytes.down.ip = 60 * 240_000;
        record
    }

    fn payload(record: &ForkRecord) -> f64 {
        let results = Results::of(vec![record.clone()]).expect("one study");
        Payloads::of(&results).bytes(&results.cells[0]).expect("known")
    }

    #[test]
    fn points_weigh_what_their_letters_do_and_the_rest_of_a_body_is_markup() {
        let record = points("poi sync", &[("poi", "250"), ("heap", "free")]);
        let known = payload(&record);
        // 250 points of 752 letters, and the request.
        assert!((188_000.0..188_020.0).contains(&known), "{known}");
        let parts = of(&record, Some(known)).expect("captured");
        assert!((parts[4] - known).abs() < 1.0 && parts[3] > 40_000.0, "{parts:?}");
        let unknown = of(&record, None).expect("captured");
        assert!(unknown[4] == 0.0 && (unknown[3] - parts[3] - parts[4]).abs() < 1.0, "{unknown:?}");
    }

    #[test]
    fn a_body_that_is_shorter_than_its_digits_is_payload_as_a_whole() {
        let record = points("poi sync", &[("poi", "250")]);
        let parts = of(&record, Some(1e9)).expect("captured");
        assert!(parts[3] == 0.0 && parts[4] > 229_000.0, "{parts:?}");
    }

    #[test]
    fn bytes_of_pages_are_told_for_the_synchronisation_that_is_timed() {
        let mut record = points("points at a time", &[("page", "64")]);
        let each = record.latency[phase::RTT].clone();
        record.latency.insert(phase::RTT.into(), PhaseLatency { n: 60, ..each.clone() });
        let page = Metric::find("bytes_wire").and_then(|metric| (metric.of)(&record)).expect("captured");
        record.latency.insert(phase::SYNC.into(), PhaseLatency { n: 2, ..each });
        let whole = Metric::find("bytes_wire").and_then(|metric| (metric.of)(&record)).expect("captured");
        assert!((whole / page - 30.0).abs() < 1e-9, "{page} {whole}");
        assert!(payload(&record) > 1_884.0 * 688.0, "all points, not a page");
    }

    #[test]
    fn arrays_and_numbers_have_a_payload_and_what_no_plan_has_does_not() {
        let mut record = points("query latency (Zend)", &[("type", "String"), ("items", "200")]);
        record.study = "cai-2009".into();
        let strings = payload(&record);
        assert!((2_000.0..2_020.0).contains(&strings), "{strings}");
        record.cell = BTreeMap::from([("items".to_owned(), "201".to_owned())]);
        let results = Results::of(vec![record]).expect("one study");
        assert_eq!(Payloads::of(&results).bytes(&results.cells[0]), None);
    }
}
