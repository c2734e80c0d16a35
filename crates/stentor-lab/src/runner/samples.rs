//! Evaluation of both halves' samples into distributions by phase.

use crate::record::{
    Bytes, DirectionBytes, ExchangeCounts, ForkRecord, From, PhaseLatency, RecordError, phase,
};
use crate::runner::testbed::DataTimes;
use crate::statistics::warm_up;
use crate::subject::sample::{
    ClientSample, READ_WHILE_RECEIVED, SENT_WHILE_WRITTEN, STATUS_OUT_OF_MEMORY, ServerSample,
};
use std::collections::{BTreeMap, BTreeSet};

/// Phases blurred by a flag of the client's samples, and below by one of the server's. If a message is sent while it is written, the end of
/// writing is recorded too late or too early, which affects every phase that starts there.
const BLURRED_BY_CLIENT: [(u16, &[&str]); 2] = [
    (SENT_WHILE_WRITTEN, &[phase::CLIENT_SER, phase::REQUEST, phase::NET]),
    (READ_WHILE_RECEIVED, &[phase::TRANSFER, phase::CLIENT_DESER, phase::NET]),
];
const BLURRED_BY_SERVER: [(u16, &[&str]); 2] = [
    (SENT_WHILE_WRITTEN, &[phase::SERVER_SER, phase::SERVICE, phase::NET]),
    (READ_WHILE_RECEIVED, &[phase::OWD, phase::SERVER_DESER, phase::SERVICE, phase::NET]),
];

/// Samples of the measured exchanges of one fork.
#[derive(Default)]
pub(super) struct ForkSamples<'a> {
    /// The client's samples, in the order of their numbers.
    pub(super) client: &'a [ClientSample],
    /// The server's samples, in the order of arrival.
    pub(super) server: &'a [ServerSample],
    /// The times at which rows were inserted, for each of the client's samples; empty if none were.
    pub(super) inserted: &'a [i64],
    /// Exchanges per synchronisation; below two, no synchronisation times are computed.
    pub(super) pages: usize,
    /// True if the clock of an exchange stops when the response begins, as in albertengo-2020's published code.
    pub(super) stops_at_headers: bool,
    /// The times of packets with data at the server's end; `None` if packets are not visible.
    pub(super) server_end: Option<&'a DataTimes>,
    /// True if both halves number exchanges alike, so that every pair of samples can be matched.
    pub(super) are_numbered: bool,
}

/// Returns the time of an exchange from its actual start until the response is decoded.
pub(super) const fn rtt(sample: &ClientSample) -> i64 {
    sample.t_deser_end - sample.t_start
}

/// Returns the median of successful exchanges in nanoseconds, with the insertion of their rows; 0 without any.
pub(super) fn median_ns(client: &[ClientSample], inserted: &[i64]) -> u64 {
    let samples = ForkSamples { client, inserted, ..ForkSamples::default() };
    let mut times: Vec<i64> = samples.done().map(|(one, end)| end - one.t_start).collect();
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0, |median| median.max(&0).cast_unsigned())
}

/// Returns true if a client reported an exchange that failed for lack of memory.
pub(super) fn ran_out(counts: &ExchangeCounts) -> bool {
    counts.errors.contains_key(&status_text(STATUS_OUT_OF_MEMORY))
}

fn status_text(status: u16) -> String {
    format!("status {status}")
}

impl ForkSamples<'_> {
    /// Counts exchanges and summarizes every phase.
    pub(super) fn sum_up(&self, record: &mut ForkRecord) -> Result<(), RecordError> {
        let counts = &mut record.counts;
        counts.sent = self.client.len() as u64;
        counts.ok = self.client.iter().filter(|one| one.status == 0).count() as u64;
        for failed in self.client.iter().filter(|one| one.status != 0) {
            *counts.errors.entry(status_text(failed.status)).or_default() += 1;
        }
        let (mut times, has_settled) = self.of_client();
        record.has_settled = has_settled;
        times.extend(self.of_server());
        times.extend(self.of_both());
        times.insert(phase::OWD_PACKETS, self.of_packets());
        for (name, times) in times {
            let from = if name == phase::RTT_INTENDED { From::Intended } else { From::Start };
            if let Some(latency) = PhaseLatency::of(&times, from)? {
                record.latency.insert(name.to_owned(), latency);
            }
        }
        record.overlaps = Some(self.overlaps());
        Ok(())
    }

    /// Returns the phases blurred in any successful exchange.
    fn overlaps(&self) -> BTreeSet<String> {
        let client = self.client.iter().filter(|one| one.status == 0).fold(0, |flags, one| flags | one.flags);
        let server = self.server.iter().filter(|one| one.status == 0).fold(0, |flags, one| flags | one.flags);
        let blurred = [(client, BLURRED_BY_CLIENT), (server, BLURRED_BY_SERVER)];
        let raised = blurred.into_iter().flat_map(|(flags, by)| {
            by.into_iter().filter(move |(flag, _)| flags & flag != 0).flat_map(|(_, phases)| phases)
        });
        raised.map(|phase| (*phase).to_owned()).collect()
    }

    /// Lists the successful exchanges with the end of their clock: rows inserted, values decoded, or headers received.
    fn done(&self) -> impl Iterator<Item = (&ClientSample, i64)> {
        let otherwise =
            |one: &ClientSample| if self.stops_at_headers { one.t_first_byte } else { one.t_deser_end };
        let ends = self.inserted.iter().copied().map(Some).chain(std::iter::repeat(None));
        let ended = self.client.iter().zip(ends);
        let ended = ended.map(move |(one, end)| (one, end.unwrap_or_else(|| otherwise(one))));
        ended.filter(|(one, _)| one.status == 0)
    }

    /// Returns the times of the client by phase, and whether it settled.
    fn of_client(&self) -> (BTreeMap<&'static str, Vec<i64>>, Option<bool>) {
        let each =
            |time: fn(&ClientSample, i64) -> i64| self.done().map(|(one, end)| time(one, end)).collect();
        let mut times = BTreeMap::from([
            (phase::RTT, each(|one, end| end - one.t_start)),
            (phase::CLIENT_SER, each(|one, _| one.t_ser_end - one.t_start)),
            (phase::REQUEST, each(|one, _| one.t_first_byte - one.t_ser_end)),
            (phase::TRANSFER, each(|one, _| one.t_end - one.t_first_byte)),
            (phase::CLIENT_DESER, each(|one, _| one.t_deser_end - one.t_end)),
        ]);
        let whole: &Vec<i64> = &times[phase::RTT];
        let warming = warm_up(&whole.iter().map(|time| *time as f64).collect::<Vec<_>>());
        let steady = whole[warming.samples..].to_vec();
        times.insert(phase::RTT_STEADY, steady);
        if self.client.iter().all(|one| one.t_intended > 0) {
            times.insert(phase::RTT_INTENDED, each(|one, end| end - one.t_intended));
            times.insert(phase::LATE, each(|one, _| one.t_start - one.t_intended));
        }
        if !self.inserted.is_empty() {
            times.insert(phase::INSERT, each(|one, end| end - one.t_deser_end));
        }
        if self.pages > 1 {
            let all: &Vec<i64> = &times[phase::RTT];
            times.insert(phase::SYNC, all.chunks_exact(self.pages).map(|pages| pages.iter().sum()).collect());
        }
        (times, warming.has_settled)
    }

    fn of_server(&self) -> BTreeMap<&'static str, Vec<i64>> {
        let answered = || self.server.iter().filter(|one| one.status == 0);
        let each = |time: fn(&ServerSample) -> i64| answered().map(time).collect();
        BTreeMap::from([
            (phase::SERVER_DESER, each(|one| one.t_deser_end - one.t_recv)),
            (phase::SERVER_WORK, each(|one| one.t_work_end - one.t_deser_end)),
            (phase::SERVER_SER, each(|one| one.t_ser_end - one.t_work_end)),
            (phase::SERVICE, each(|one| one.t_ser_end - one.t_recv)),
        ])
    }

    /// Returns the one-way delays by packets. Exchanges that overlap are left out, because their packets cannot be told apart.
    fn of_packets(&self) -> Vec<i64> {
        let Some(seen) = self.server_end else { return Vec::new() };
        let mut started: Vec<&ClientSample> = self.client.iter().filter(|one| one.status == 0).collect();
        started.sort_by_key(|one| one.t_start);
        let is_alone = |place: usize| {
            let before = started[..place].iter().all(|one| one.t_end <= started[place].t_start);
            before && started.get(place + 1).is_none_or(|next| started[place].t_end <= next.t_start)
        };
        let alone = (0..started.len()).filter(|place| is_alone(*place)).map(|place| started[place]);
        alone.filter_map(|one| Some(self.arrival(seen, one)? - one.t_start)).collect()
    }

    /// Returns the time at which the last packet of a request reached the server. A service is still before its answer then; its
    /// connection may have been opened in between. Behind a gateway the connection is kept, and acknowledgements follow the answer.
    fn arrival(&self, seen: &DataTimes, one: &ClientSample) -> Option<i64> {
        let place = |times: &[i64], time: i64| times.partition_point(|other| *other < time);
        let from = place(&seen.arrived_ns, one.t_start);
        let until = if self.are_numbered {
            let first = *seen.arrived_ns.get(from)?;
            *seen.left_ns.get(place(&seen.left_ns, first))?
        } else {
            one.t_first_byte
        };
        seen.arrived_ns[from..place(&seen.arrived_ns, until).max(from)].last().copied()
    }

    /// Joins the samples of both halves by their order. If the halves do not number them alike, concurrent exchanges are left out, because
    /// their order may have changed. Nothing is joined if the halves have different numbers of samples or an exchange failed.
    fn of_both(&self) -> BTreeMap<&'static str, Vec<i64>> {
        let mut started: Vec<&ClientSample> = self.client.iter().collect();
        started.sort_by_key(|one| one.t_start);
        if started.len() != self.server.len() || started.iter().any(|one| one.status != 0) {
            return BTreeMap::new();
        }
        let is_alone = |place: usize| {
            let before = place.checked_sub(1).map_or(i64::MIN, |before| started[before].t_end);
            let after = started.get(place + 1).map_or(i64::MAX, |after| after.t_start);
            self.are_numbered || before <= started[place].t_start && started[place].t_end <= after
        };
        let pairs = || {
            let alone = (0..started.len()).filter(|place| is_alone(*place));
            let pairs = alone.map(|place| (started[place], &self.server[place]));
            pairs.filter(|(client, server)| client.t_start <= server.t_recv && server.t_recv <= client.t_end)
        };
        let net = |client: &ClientSample, server: &ServerSample| {
            (client.t_end - client.t_ser_end) - (server.t_ser_end - server.t_recv)
        };
        BTreeMap::from([
            (phase::OWD, pairs().map(|(client, server)| server.t_recv - client.t_start).collect()),
            (phase::NET, pairs().map(|(client, server)| net(client, server)).collect()),
        ])
    }
}

/// Sums the body sizes of both directions.
pub(super) fn bodies(samples: &ForkSamples<'_>) -> Bytes {
    let way = |sizes: &mut dyn Iterator<Item = u32>| DirectionBytes {
        app: sizes.map(u64::from).sum(),
        ..DirectionBytes::default()
    };
    Bytes {
        source: "body".into(),
        exchanges: samples.client.len() as u64,
        up: way(&mut samples.server.iter().map(|one| one.bytes)),
        down: way(&mut samples.client.iter().map(|one| one.bytes)),
        handshake: DirectionBytes::default(),
    }
}

/// Adds the body sizes known only to the halves to the sizes counted from frames.
pub(super) fn with_bodies(mut frames: Bytes, bodies: &Bytes) -> Bytes {
    frames.up.app = bodies.up.app;
    frames.down.app = bodies.down.app;
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchanged(stops_at_headers: bool) -> ForkRecord {
        let client: Vec<ClientSample> = (1..=3)
            .map(|seq| ClientSample {
                seq,
                t_start: 1_000_000,
                t_ser_end: 1_010_000,
                t_first_byte: 4_000_000,
                t_end: 6_000_000,
                t_deser_end: 9_000_000,
                ..ClientSample::default()
            })
            .collect();
        let mut record = ForkRecord::default();
        let samples = ForkSamples { client: &client, stops_at_headers, ..ForkSamples::default() };
        samples.sum_up(&mut record).expect("written");
        record
    }

    #[test]
    fn the_interval_of_exchanges_covers_the_insertion_of_their_rows() {
        let client = [sample(0, 1_000, 2_000, 4_000), sample(1, 10_000, 11_000, 13_000)];
        assert_eq!(median_ns(&client, &[]), 3_000);
        assert_eq!(median_ns(&client, &[9_000, 18_000]), 8_000);
        assert_eq!(median_ns(&[], &[]), 0);
    }

    #[test]
    fn what_a_half_streams_is_named_by_phase_and_what_failed_says_nothing_of_it() {
        let client = |flags, status| ClientSample { flags, status, ..ClientSample::default() };
        let server = |flags| ServerSample { flags, ..ServerSample::default() };
        let named = |client: &[ClientSample], server: &[ServerSample]| {
            let mut record = ForkRecord::default();
            let samples = ForkSamples { client, server, ..ForkSamples::default() };
            samples.sum_up(&mut record).expect("written");
            record.overlaps.expect("looked at").into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named(&[client(0, 0)], &[server(0)]), "");
        assert_eq!(named(&[client(0, 0), client(1, 0)], &[server(0)]), "client_ser net request");
        assert_eq!(named(&[client(2, 0)], &[]), "client_deser net transfer");
        assert_eq!(named(&[client(3, 1)], &[]), "");
        assert_eq!(named(&[client(0, 0)], &[server(2)]), "net owd server_deser svc");
        assert_eq!(named(&[], &[server(1)]), "net server_ser svc");
    }

    fn sample(seq: u64, t_start: i64, t_first_byte: i64, t_end: i64) -> ClientSample {
        let (t_ser_end, t_deser_end) = (t_start, t_end);
        ClientSample { seq, t_start, t_ser_end, t_first_byte, t_end, t_deser_end, ..ClientSample::default() }
    }

    #[test]
    fn a_request_has_arrived_with_its_last_packet_before_the_answer_and_overlapping_ones_are_left_out() {
        let client = [sample(0, 100, 190, 200), sample(1, 300, 380, 420), sample(2, 400, 480, 490)];
        // A packet before the first exchange, two of its request with a handshake between them, one after its answer.
        let seen = DataTimes { arrived_ns: vec![90, 120, 150, 195, 350, 450], left_ns: vec![130, 160] };
        let samples = ForkSamples { client: &client, server_end: Some(&seen), ..ForkSamples::default() };
        assert_eq!(samples.of_packets(), [50]);
        assert!(ForkSamples { client: &client, ..ForkSamples::default() }.of_packets().is_empty());
    }

    #[test]
    fn behind_a_gateway_what_comes_after_the_first_packet_of_the_answer_is_no_request() {
        let client = [sample(0, 100, 190, 200)];
        // Two packets of the request, the answer, and the gateway's acknowledgement of it.
        let seen = DataTimes { arrived_ns: vec![120, 130, 170], left_ns: vec![110, 160] };
        let samples = ForkSamples {
            client: &client,
            server_end: Some(&seen),
            are_numbered: true,
            ..ForkSamples::default()
        };
        assert_eq!(samples.of_packets(), [30]);
    }

    #[test]
    fn a_round_trip_ends_with_values_or_where_the_published_code_stopped_its_clock() {
        let ms = |record: &ForkRecord, name: &str| (record.latency[name].p50 as f64 / 1e6).round();
        let (whole, headers) = (exchanged(false), exchanged(true));
        assert!((ms(&whole, phase::RTT) - 8.0).abs() < 0.1, "{:?}", whole.latency);
        assert!((ms(&headers, phase::RTT) - 3.0).abs() < 0.1, "{:?}", headers.latency);
        let parsing = [&whole, &headers].map(|record| ms(record, phase::CLIENT_DESER));
        assert!(parsing.iter().all(|ms| (ms - 3.0).abs() < 0.1), "phases stay: {parsing:?}");
    }
}
