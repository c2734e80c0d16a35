//! The exchanges of a trace: each packet belongs to one of them, whenever it came.

use super::EnergyError;
use super::trace::{Direction, PacketTrace, TracePacket};
use std::collections::HashMap;

/// Maximum of exchanges in a trace: eleven days of one every half second.
const EXCHANGES_MAX: i64 = 2_000_000;
/// A client notes the arrival of a reply at most this long after the reply's first packet. It notes a reply in many packets, or an
/// encrypted one, as late as it can read it.
const NOTED_WITHIN_NS: i64 = 5_000_000;
/// A start that the trace alone tells may be earlier than expected by this part of the interval, because the one before was late.
const EARLY_PARTS: i64 = 4;

/// The times of an exchange, as noted by its client, in the clock of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// Its start.
    pub start_ns: i64,
    /// Its reply; `None` if there was none.
    pub reply: Option<ReplyTimes>,
}

/// The times of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTimes {
    /// The arrival of its first bytes.
    pub first_ns: i64,
    /// The arrival of its last bytes.
    pub last_ns: i64,
}

/// The packets of each exchange of a trace, with times relative to the start of their exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceExchanges(Vec<Vec<TracePacket>>);

impl TraceExchanges {
    /// Assigns packets by times that the client noted, so that replies of overlapping exchanges keep their distance.
    ///
    /// A packet from the device belongs to the exchange that started last, one to the device to the exchange whose reply it is, and a bare
    /// acknowledgement to the exchange of the packet that it confirms. Packets before the first start belong to none.
    pub fn timed(trace: &PacketTrace, times: &[ExchangeTimes]) -> Result<Self, EnergyError> {
        let mut times = times.to_vec();
        times.sort_by_key(|exchange| exchange.start_ns);
        let starts = times.iter().map(|exchange| exchange.start_ns).collect();
        Self::assigned(trace, starts, |packet| {
            let started = times.partition_point(|exchange| exchange.start_ns <= packet.at_ns);
            let latest = started.checked_sub(1)?;
            let answered = times[..started].iter().enumerate().filter_map(|(place, exchange)| {
                let reply = exchange.reply.filter(|_| packet.direction == Direction::Down)?;
                let is_of_reply = (reply.first_ns - NOTED_WITHIN_NS..=reply.last_ns).contains(&packet.at_ns);
                is_of_reply.then_some((reply.last_ns, place))
            });
            Some(answered.min().map_or(latest, |(_, place)| place))
        })
    }

    /// Assigns packets by the starts that the trace shows, if exchanges started about every `every_ns`.
    ///
    /// The side that sent the first packet starts each exchange, and a packet belongs to the exchange that started last. A period without a
    /// start becomes an exchange without packets. If the trace is to be repeated at a slower pace, `repeated_every_ns`, no reply may take
    /// longer than `every_ns`, because the trace does not tell which exchange such a reply is of.
    pub fn recognised(
        trace: &PacketTrace,
        every_ns: i64,
        repeated_every_ns: i64,
    ) -> Result<Self, EnergyError> {
        let starts = starts(trace, every_ns)?;
        let (begin, last) = starts.first().zip(starts.last()).ok_or_else(nothing)?;
        let end = trace.packets().iter().rev().find(|packet| packet.confirms_ns.is_none());
        let outlasts = end.is_some_and(|packet| packet.at_ns - last >= every_ns);
        if outlasts && every_ns < repeated_every_ns {
            return Err(EnergyError::Senseless(
                "the last exchange takes longer than the interval between exchanges, so that the trace does not tell which reply is of \
                 which exchange: capture one exchange at a time, or at the pace at which they are repeated"
                    .into(),
            ));
        }
        let begin = *begin;
        let places = starts.clone();
        Self::assigned(trace, starts, |packet| {
            (packet.at_ns >= begin).then(|| places.partition_point(|start| *start <= packet.at_ns) - 1)
        })
    }

    /// Sorts packets into exchanges by `place`; bare acknowledgements follow the packet that they confirm.
    fn assigned(
        trace: &PacketTrace,
        starts: Vec<i64>,
        place: impl Fn(&TracePacket) -> Option<usize>,
    ) -> Result<Self, EnergyError> {
        let mut exchanges = vec![Vec::new(); starts.len()];
        let mut places: HashMap<(Direction, i64), usize> = HashMap::new();
        for packet in trace.packets() {
            let confirmed = packet.confirms_ns.map(|at_ns| (packet.direction.opposite(), at_ns));
            let known = confirmed.and_then(|confirmed| places.get(&confirmed).copied());
            let Some(found) = known.or_else(|| place(packet)) else { continue };
            places.insert((packet.direction, packet.at_ns), found);
            let at_ns = packet.at_ns - starts[found];
            exchanges[found].push(TracePacket { at_ns, confirms_ns: None, ..*packet });
        }
        if exchanges.iter().all(Vec::is_empty) {
            return Err(nothing());
        }
        Ok(Self(exchanges))
    }

    /// Lists the exchanges; there is at least one packet in them.
    #[must_use]
    pub fn all(&self) -> &[Vec<TracePacket>] {
        &self.0
    }
}

/// Finds the starts in a trace: the packets of the side that begins, about `every_ns` apart.
fn starts(trace: &PacketTrace, every_ns: i64) -> Result<Vec<i64>, EnergyError> {
    if every_ns <= 0 {
        return Err(EnergyError::Senseless(
            "the interval between exchanges must be longer than nothing".into(),
        ));
    }
    let carrying = || trace.packets().iter().filter(|packet| packet.confirms_ns.is_none());
    let opener = carrying().next().ok_or_else(nothing)?.direction;
    let early = every_ns / EARLY_PARTS;
    let mut starts: Vec<i64> = Vec::new();
    for packet in carrying().filter(|packet| packet.direction == opener) {
        let Some(&before) = starts.last() else {
            starts.push(packet.at_ns);
            continue;
        };
        let since = packet.at_ns - before;
        if since < every_ns - early {
            continue;
        }
        // Periods without a start keep their place.
        let empty = ((since + every_ns / 2) / every_ns - 1).max(0);
        if starts.len() as i64 + empty > EXCHANGES_MAX {
            return Err(EnergyError::Senseless(format!("more than {EXCHANGES_MAX} exchanges in the trace")));
        }
        starts.extend((1..=empty).map(|period| before + period * every_ns));
        starts.push(packet.at_ns);
    }
    Ok(starts)
}

/// Returns the error for a trace without packets.
fn nothing() -> EnergyError {
    EnergyError::Missing("there is no packet that could be repeated".into())
}
