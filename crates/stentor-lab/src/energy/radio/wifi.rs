//! Wi-Fi that stays awake during traffic and for a while after it, and draws more power at a high rate.

use super::super::EnergyError;
use super::super::nanoseconds;
use super::super::trace::TracePacket;
use super::timeline::TimelineCursor;
use super::{Machine, RadioSink, RadioState};
use serde::Deserialize;

/// Coefficients of the model, named as in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdaptiveCoefficients {
    sleep_w: f64,
    awake_w: f64,
    high_w: f64,
    sleep_after_s: f64,
    window_s: f64,
    window_bytes: f64,
}

/// A radio that sleeps after a timeout. Time awake is divided into windows; windows with many bytes have a higher power.
pub(super) struct Adaptive {
    of: AdaptiveCoefficients,
    cursor: TimelineCursor,
    last: Option<i64>,
    sleep_after_ns: i64,
    window_ns: i64,
    /// Start of the window not yet reported, and its bytes.
    window_from: i64,
    window_bytes: u64,
}

impl Adaptive {
    pub(super) fn new(of: AdaptiveCoefficients, since_ns: i64) -> Result<Self, EnergyError> {
        let (sleep_after_ns, window_ns) = (nanoseconds(of.sleep_after_s), nanoseconds(of.window_s));
        if window_ns <= 0 {
            return Err(EnergyError::Senseless("Wi-Fi's window of bytes is zero".into()));
        }
        let cursor = TimelineCursor { at_ns: since_ns };
        Ok(Self { of, cursor, last: None, sleep_after_ns, window_ns, window_from: 0, window_bytes: 0 })
    }

    /// Reports all windows that have ended by an instant.
    fn windows(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        let ended = (to_ns - self.window_from) / self.window_ns;
        if ended >= 1 {
            self.window(self.window_from + self.window_ns, sink);
            self.window_from += ended * self.window_ns;
            self.window_bytes = 0;
            self.window(self.window_from, sink);
        }
    }

    fn window(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        let is_high = self.window_bytes as f64 > self.of.window_bytes;
        let (state, watt) =
            if is_high { (RadioState::High, self.of.high_w) } else { (RadioState::Awake, self.of.awake_w) };
        self.cursor.until(to_ns, state, watt, sink);
    }

    /// Reports the states until an instant. Returns true if the radio sleeps by then.
    fn advance(&mut self, last: i64, to_ns: i64, sink: &mut dyn RadioSink) -> bool {
        let sleeps_at = last + self.sleep_after_ns;
        let awake_until = sleeps_at.min(to_ns);
        self.windows(awake_until, sink);
        if sleeps_at >= to_ns {
            return false;
        }
        self.window(sleeps_at, sink);
        true
    }
}

impl Machine for Adaptive {
    fn packet(&mut self, packet: TracePacket, sink: &mut dyn RadioSink) {
        let at = packet.at_ns;
        let sleeps = self.last.is_none_or(|last| self.advance(last, at, sink));
        if sleeps {
            self.cursor.until(at, RadioState::Sleep, self.of.sleep_w, sink);
            self.window_from = at;
            self.window_bytes = 0;
        }
        self.window_bytes += u64::from(packet.bytes);
        self.last = Some(at);
    }

    fn finish(&mut self, to_ns: i64, sink: &mut dyn RadioSink) {
        if let Some(last) = self.last
            && !self.advance(last, to_ns, sink)
        {
            self.window(to_ns, sink);
        }
        self.cursor.until(to_ns, RadioState::Sleep, self.of.sleep_w, sink);
    }

    fn lead_ns(&self) -> i64 {
        0
    }

    fn rest_ns(&self) -> i64 {
        self.sleep_after_ns
    }
}
