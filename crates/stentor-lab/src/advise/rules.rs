//! The rules, as data.

use super::evidence::Told;
use super::{Known, Reason, Weight, Wish};
use crate::study::Verdict;

/// What a study says of some choices under some conditions.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Choices that it speaks of.
    choices: &'static [&'static str],
    /// When it applies.
    when: fn(&Wish) -> bool,
    /// Points, if the claim behind it holds and the wish weighs as usual.
    points: f64,
    /// By which wish points are weighed.
    weight: fn(&Wish) -> f64,
    /// The reason.
    text: &'static str,
    /// Study and claim behind it; without one it is a fact about the format that anybody can look up.
    pub claim: Option<(&'static str, &'static str)>,
    /// The part of the claim that bears on the choice, as a check: it decides where the whole cannot be tested.
    pub(super) part: Option<&'static str>,
}

const REST: &[&str] = &["rest+json", "rest+xml", "rest+protobuf"];
const PROTOBUF: &[&str] = &["rest+protobuf", "socket+protobuf"];
const SOCKETS: &[&str] = &["socket+protobuf", "socket+xml-sax"];
const XML: &[&str] = &["rest+xml", "soap", "xmlrpc", "socket+xml-sax"];

/// From so many bytes on a payload is large: about 250 points of interest of anacleto-2012.
const LARGE_BYTES: u64 = 150_000;
/// Up to so many bytes it is one point of interest, or a push message.
const SMALL_BYTES: u64 = 1000;
/// Bytes of cai-2009's 1600 objects, about.
const MANY_OBJECTS_BYTES: u64 = 32_000;
/// A radio with a tail of ten seconds never sleeps at more messages a second than this.
const TAIL_PER_SECOND: f64 = 0.1;

const fn once(_: &Wish) -> f64 {
    1.0
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule {
        choices: PROTOBUF,
        when: |wish| wish.payload_bytes >= LARGE_BYTES,
        points: 2.0,
        weight: once,
        text: "large content arrives soonest and with the fewest bytes in Protocol Buffers",
        claim: Some(("anacleto-2012", "C001-3")),
        part: None,
    },
    Rule {
        choices: PROTOBUF,
        when: |wish| wish.payload_bytes <= SMALL_BYTES,
        points: 1.0,
        weight: once,
        text: "a single record arrived soonest in Protocol Buffers over HTTP",
        claim: Some(("anacleto-2012", "C001-1")),
        part: None,
    },
    Rule {
        choices: PROTOBUF,
        when: |wish| wish.payload_bytes >= LARGE_BYTES,
        points: 1.0,
        weight: once,
        text: "from 250 records on Protocol Buffers moves the fewest bytes",
        claim: Some(("anacleto-2012", "C001-5")),
        part: None,
    },
    Rule {
        choices: SOCKETS,
        when: |wish| wish.payload_bytes <= SMALL_BYTES,
        points: -1.0,
        weight: once,
        text: "the raw socket was the slowest for a single record (two threads for each connection)",
        claim: Some(("anacleto-2012", "C001-1")),
        part: None,
    },
    Rule {
        choices: SOCKETS,
        when: |_| true,
        points: 1.0,
        weight: |wish| wish.energy.points(),
        text: "a socket loads the processor and the memory least",
        claim: Some(("anacleto-2012", "C001-6")),
        part: None,
    },
    Rule {
        choices: SOCKETS,
        when: |_| true,
        points: 1.0,
        weight: |wish| wish.energy.points(),
        text: "a socket needs less of the system because it parses less",
        claim: Some(("anacleto-2012", "C001-12")),
        part: None,
    },
    Rule {
        choices: &["rest+protobuf"],
        when: |_| true,
        points: 1.0,
        weight: |wish| wish.energy.points(),
        text: "HTTP with Protocol Buffers needs the least of the system, and so of the battery",
        claim: Some(("anacleto-2012", "C001-16")),
        part: None,
    },
    Rule {
        choices: &["xmlrpc"],
        when: |wish| wish.payload_bytes >= MANY_OBJECTS_BYTES,
        points: -3.0,
        weight: once,
        text: "XML-RPC breaks down when answers hold many items",
        claim: Some(("cai-2009", "C004-2")),
        part: None,
    },
    Rule {
        choices: &["xmlrpc"],
        when: |_| true,
        points: -2.0,
        weight: once,
        text: "XML-RPC is slow with objects even when they are few",
        claim: Some(("cai-2009", "C004-3")),
        part: None,
    },
    Rule {
        choices: REST,
        when: |_| true,
        points: 1.0,
        weight: once,
        text: "REST is the fastest of REST, SOAP and XML-RPC",
        claim: Some(("cai-2009", "C004-1")),
        part: None,
    },
    Rule {
        choices: REST,
        when: |_| true,
        points: 1.0,
        weight: once,
        text: "a round trip takes less with REST than with SOAP, over all payloads",
        claim: Some(("albertengo-2020", "C000-2")),
        part: Some("RTT[subject=REST] < RTT[subject=SOAP]"),
    },
    Rule {
        choices: REST,
        when: |_| true,
        points: 1.0,
        weight: once,
        text: "REST puts fewer bytes on the network than SOAP",
        claim: Some(("albertengo-2020", "C000-4")),
        part: Some("NDU[subject=REST] < NDU[subject=SOAP]"),
    },
    Rule {
        choices: REST,
        when: |_| true,
        points: 1.0,
        weight: |wish| wish.energy.points(),
        text: "the battery lasts longest with REST",
        claim: Some(("albertengo-2020", "C000-8")),
        part: None,
    },
    Rule {
        choices: &["soap"],
        when: |_| true,
        points: 2.0,
        weight: |wish| wish.correctness.points(),
        text: "SOAP is for where correctness counts",
        claim: Some(("cai-2009", "C004-16")),
        part: None,
    },
    Rule {
        choices: &["soap"],
        when: |_| true,
        points: 1.0,
        weight: |wish| wish.correctness.points(),
        text: "a WSDL checks types and operations before anything runs, and faults are part of the protocol",
        claim: None,
        part: None,
    },
    Rule {
        choices: PROTOBUF,
        when: |_| true,
        points: 1.0,
        weight: |wish| wish.correctness.points(),
        text: "a schema fixes the types of both sides",
        claim: None,
        part: None,
    },
    Rule {
        choices: &["rest+json", "rest+xml"],
        when: |_| true,
        points: 2.0,
        weight: |wish| wish.openness.points(),
        text: "REST is for open services",
        claim: Some(("cai-2009", "C004-16")),
        part: None,
    },
    Rule {
        choices: &["rest+json"],
        when: |_| true,
        points: 1.0,
        weight: |wish| wish.openness.points(),
        text: "anything that speaks HTTP can be a client, without a schema or a library",
        claim: None,
        part: None,
    },
    Rule {
        choices: SOCKETS,
        when: |wish| wish.openness >= Weight::Some,
        points: -1.0,
        weight: |wish| wish.openness.points(),
        text: "frames of one's own need a client of one's own, and a port that firewalls let through",
        claim: None,
        part: None,
    },
    Rule {
        choices: XML,
        when: |wish| wish.link.has_tail && wish.per_second < TAIL_PER_SECOND,
        points: -0.5,
        weight: |wish| wish.energy.points(),
        text: "between rare messages a radio sleeps, and each further byte keeps it awake",
        claim: None,
        part: None,
    },
];

impl Rule {
    /// Returns what it says of a choice; `None` where it does not apply.
    pub(super) fn reason(&self, wish: &Wish, choice: &str, known: &Known) -> Option<Reason> {
        if !self.choices.contains(&choice) || !(self.when)(wish) {
            return None;
        }
        // What nobody asked about is not told.
        if (self.weight)(wish) == 0.0 {
            return None;
        }
        let found = self.claim.and_then(|claim| known.get(&claim));
        let ours = found.and_then(|one| one.ours.as_ref());
        let published = found.map(|one| one.published);
        Some(Reason {
            points: self.points * (self.weight)(wish) * credit(published, ours),
            text: self.text.to_owned(),
            claim: self.claim.map(|(study, claim)| format!("{study} {claim}")),
            says: found.map(|one| one.says.clone()),
            published,
            ours: ours.map(|told| told.verdict),
            part: ours.and_then(|told| told.part.clone()),
        })
    }
}

/// How much a claim counts: measurements of ours decide where there are some, else the paper's own tables.
fn credit(published: Option<Verdict>, ours: Option<&Told>) -> f64 {
    match ours.map(|told| told.verdict).or(published) {
        None | Some(Verdict::Holds) => 1.0,
        Some(Verdict::Undecided | Verdict::NotTestable) => 0.5,
        Some(Verdict::DoesNotHold) => 0.0,
    }
}
