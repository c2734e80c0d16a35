//! LTE: a promotion, reception, then a tail of shorter and longer rests before idle.

use super::super::EnergyError;
use super::super::nanoseconds;
use super::super::trace::{Direction, TracePacket};
use super::timeline::TimelineCursor;
use super::{Machine, RadioSink, RadioState};
use serde::Deserialize;

/// Bits of a byte, and joules of a milliwatt times a second over a megabit.
const JOULE_PER_BYTE_OF_MW_PER_MBPS: f64 = 8.0 / 1e6 / 1e3;

/// Numbers of the model, as in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LteCoefficients {
    promotion_s: f64,
    promotion_w: f64,
    inactivity_s: f64,
    short_drx_s: f64,
    long_drx_s: f64,
    drx_ping_s: f64,
    short_drx_period_s: f64,
    long_drx_period_s: f64,
    drx_ping_w: f64,
    tail_base_w: f64,
    idle_ping_s: f64,
    idle_ping_period_s: f64,
    idle_ping_w: f64,
    up_mw_per_mbps: f64,
    down_mw_per_mbps: f64,
    base_w: f64,
}

/// A radio of LTE.
pub(super) struct Lte {
    cursor: TimelineCursor,
    last: Option<i64>,
    promotion_ns: i64,
    promotion_w: f64,
    /// States after the last packet: for how long, and their power.
    rests: [(RadioState, i64, f64); 3],
    base_w: f64,
    idle_w: f64,
    up_joule: f64,
    down_joule: f64,
}

impl Lte {
    pub(super) fn new(of: LteCoefficients, since_ns: i64) -> Result<Self, EnergyError> {
        let periods = [of.short_drx_period_s, of.long_drx_period_s, of.idle_ping_period_s];
        if periods.iter().any(|period| *period <= 0.0) {
            return Err(EnergyError::Senseless("a period of LTE's pings is zero".into()));
        }
        let mean = |period: f64, ping: f64, ping_w: f64, else_w: f64| {
            let part = (ping / period).min(1.0);
            part * ping_w + (1.0 - part) * else_w
        };
        let drx = |period| mean(period, of.drx_ping_s, of.drx_ping_w, of.tail_base_w);
        Ok(Self {
            cursor: TimelineCursor { at_ns: since_ns },
            last: None,
            promotion_ns: nanoseconds(of.promotion_s),
            promotion_w: of.promotion_w,
            rests: [
                (RadioState::Tail, nanoseconds(of.inactivity_s), of.base_w),
                (RadioState::ShortDrx, nanoseconds(of.short_drx_s), drx(of.short_drx_period_s)),
                (RadioState::LongDrx, nanoseconds(of.long_drx_s), drx(of.long_drx_period_s)),
            ],
            base_w: of.base_w,
            idle_w: mean(of.idle_ping_period_s, of.idle_ping_s, of.idle_ping_w, 0.0),
            up_joule: of.up_mw_per_mbps * JOULE_PER_BYTE_OF_MW_PER_MBPS,
            down_joule: of.down_mw_per_mbps * JOULE_PER_BYTE_OF_MW_PER_MBPS,
        })
    }

    /// Returns the tail after the last packet until an instant; returns whether the radio has come to rest by then.
    fn rest(&mut self, last: i64, to_ns: i64, sink: &mut dyn RadioSink) -> bool {
        self.cursor.until(last, RadioState::Active, self.base_w, sink);
        let mut end = last;
        for (state, lasts, watt) in self.rests {
            end += lasts;
            self.cursor.until(end.min(to_ns), state, watt, sink);
        }
        end < to_ns
    }
}

impl Machine for Lte {
    fn packet(&mut self, packet: TracePacket, sink: &mut dyn RadioSink) {
        let at = packet.at_ns;
        if let Some(last) = self.last
            && at - last > self.rests[0].1
            && self.rest(last, at, sink)
        {
            self.last = None;
        }
        if self.last.is_none() {
            self.cursor.until(at - self.promotion_ns, RadioState::Idle, self.idle_w, sink);
            self.cursor.until(at, RadioState::Promotion, self.promotion_w, sink);
        }
        let joule = match packet.direction {
            Direction::Up => self.up_joule,
            Direction::Down => self.down_joule,
        };
        sink.pulse(at, joule * f64::from(packet.bytes));
        self.last = Some(at);
    }

    fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        if let Some(last) = self.last {
            self.rest(last, to_ns, sink);
        }
        self.cursor.until(to_ns, RadioState::Idle, self.idle_w, sink);
    }

    fn lead_ns(&self) -> i64 {
        self.promotion_ns
    }

    fn rest_ns(&self) -> i64 {
        self.rests.iter().map(|(_, lasts, _)| lasts).sum()
    }
}
