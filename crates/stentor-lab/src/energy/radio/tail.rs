//! Radios with a tail, LTE and plain Wi-Fi: active until the last packet, then one rest state after the other, then idle.

use super::super::trace::TracePacket;
use super::super::{EnergyError, nanoseconds};
use super::timeline::TimelineCursor;
use super::{Machine, RadioSink, RadioState};
use serde::Deserialize;

/// Joules per byte for one mW per Mbit/s: 8 bits per byte, 10^6 bits per megabit, 10^3 mW per watt.
const JOULE_PER_BYTE_OF_MW_PER_MBPS: f64 = 8.0 / 1e6 / 1e3;

/// Coefficients of LTE, named as in its file.
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

/// Coefficients of plain Wi-Fi, named as in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainWifiCoefficients {
    active_w: f64,
    standby_w: f64,
    tail_s: f64,
}

/// A radio with a tail.
pub(super) struct TailRadio {
    cursor: TimelineCursor,
    last: Option<i64>,
    promotion_ns: i64,
    promotion_w: f64,
    active_w: f64,
    /// States after the last packet, with duration and power.
    rests: Vec<(RadioState, i64, f64)>,
    idle_w: f64,
    /// Energy per byte sent and per byte received, in addition to the power.
    byte_joules: [f64; 2],
}

impl TailRadio {
    /// Makes an LTE radio; its rest states are interrupted by pings.
    pub(super) fn lte(of: &LteCoefficients, since_ns: i64) -> Result<Self, EnergyError> {
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
            active_w: of.base_w,
            rests: vec![
                (RadioState::Tail, nanoseconds(of.inactivity_s), of.base_w),
                (RadioState::ShortDrx, nanoseconds(of.short_drx_s), drx(of.short_drx_period_s)),
                (RadioState::LongDrx, nanoseconds(of.long_drx_s), drx(of.long_drx_period_s)),
            ],
            idle_w: mean(of.idle_ping_period_s, of.idle_ping_s, of.idle_ping_w, 0.0),
            byte_joules: [of.up_mw_per_mbps, of.down_mw_per_mbps]
                .map(|mw_per_mbps| mw_per_mbps * JOULE_PER_BYTE_OF_MW_PER_MBPS),
        })
    }

    /// Makes a Wi-Fi radio that is either active or idle.
    pub(super) fn plain_wifi(of: &PlainWifiCoefficients, since_ns: i64) -> Self {
        Self {
            cursor: TimelineCursor { at_ns: since_ns },
            last: None,
            promotion_ns: 0,
            promotion_w: 0.0,
            active_w: of.active_w,
            rests: vec![(RadioState::Tail, nanoseconds(of.tail_s), of.active_w)],
            idle_w: of.standby_w,
            byte_joules: [0.0; 2],
        }
    }

    /// Reports the tail after the last packet until an instant. Returns true if the radio is at rest by then.
    fn rest(&mut self, last: i64, to_ns: i64, sink: &mut dyn RadioSink) -> bool {
        self.cursor.until(last, RadioState::Active, self.active_w, sink);
        let mut end = last;
        for (state, lasts, watt) in &self.rests {
            end += lasts;
            self.cursor.until(end.min(to_ns), *state, *watt, sink);
        }
        end < to_ns
    }
}

impl Machine for TailRadio {
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
        let joule = self.byte_joules[packet.direction as usize] * f64::from(packet.bytes);
        if joule > 0.0 {
            sink.pulse(at, joule);
        }
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
