//! The properties of the link of a run, from the command line.

use anyhow::Context;
use clap::Args;
use std::path::{Path as File, PathBuf};
use std::sync::Arc;
use stentor_rig::link::{Path, Rate, Trace};
use stentor_rig::{Link, RigLevel};
use stentor_terminal::failure::CommandFailure;

const MS_NS: f64 = 1e6;
const MEGABIT: f64 = 1e6;

/// A profile, and deviations from it.
#[derive(Debug, Args)]
pub(super) struct ShapeArgs {
    /// Profile of the link: open, lan, wan, wifi, 4g, 3g, 2g (see `stentor lab link show`)
    #[arg(long, default_value = "open", value_name = "NAME")]
    profile: String,
    /// Delay in each direction, in milliseconds
    #[arg(long, value_name = "MS", value_parser = not_negative)]
    delay_ms: Option<f64>,
    /// Largest extra delay in each direction, evenly distributed
    #[arg(long, value_name = "MS", value_parser = not_negative)]
    jitter_ms: Option<f64>,
    /// Rate to the device
    #[arg(long, value_name = "MBIT/S", value_parser = not_negative)]
    down_mbps: Option<f64>,
    /// Rate to the server
    #[arg(long, value_name = "MBIT/S", value_parser = not_negative)]
    up_mbps: Option<f64>,
    /// Share of packets lost in each direction
    #[arg(long, value_name = "PERCENT", value_parser = not_negative)]
    loss_percent: Option<f64>,
    /// Length of the queue in each direction
    #[arg(long, value_name = "PACKETS")]
    queue_packets: Option<usize>,
    /// Recorded rate to the device, in Mahimahi's format
    #[arg(long, value_name = "FILE", conflicts_with = "down_mbps")]
    down_trace: Option<PathBuf>,
    /// Recorded rate to the server, in Mahimahi's format
    #[arg(long, value_name = "FILE", conflicts_with = "up_mbps")]
    up_trace: Option<PathBuf>,
}

impl ShapeArgs {
    /// Builds the link.
    pub(super) fn link(&self) -> anyhow::Result<Link> {
        let mut link = Link::profile(&self.profile).ok_or_else(|| {
            CommandFailure::usage(format!(
                "there is no profile {}: look at `stentor lab link show`",
                self.profile
            ))
        })?;
        if self.loss_percent.is_some_and(|percent| percent > 100.0) {
            return Err(CommandFailure::usage("--loss-percent cannot be above 100").into());
        }
        let before = link.clone();
        for path in [&mut link.up, &mut link.down] {
            self.change(path);
        }
        set_rate(&mut link.up, self.up_mbps, self.up_trace.as_deref())?;
        set_rate(&mut link.down, self.down_mbps, self.down_trace.as_deref())?;
        if link != before {
            link.name = format!("{} with changes", link.name);
            link.source = "changed on the command line".to_owned();
        }
        Ok(link)
    }

    fn change(&self, path: &mut Path) {
        if let Some(delay) = self.delay_ms {
            path.delay_ns = (delay * MS_NS) as u64;
        }
        if let Some(jitter) = self.jitter_ms {
            path.jitter_ns = (jitter * MS_NS) as u64;
        }
        if let Some(percent) = self.loss_percent {
            path.loss = percent / 100.0;
        }
        path.queue_packets = self.queue_packets.unwrap_or(path.queue_packets);
    }
}

fn set_rate(path: &mut Path, megabits: Option<f64>, trace: Option<&File>) -> anyhow::Result<()> {
    if let Some(megabits) = megabits {
        path.rate = Rate::BitsPerSecond((megabits * MEGABIT) as u64);
    }
    if let Some(file) = trace {
        let text = std::fs::read_to_string(file)
            .map_err(|error| CommandFailure::usage(format!("{} cannot be read: {error}", file.display())))?;
        let trace = Trace::parse(text.trim_start_matches('\u{feff}'))
            .with_context(|| format!("{} is no trace", file.display()))?;
        path.rate = Rate::Trace(Arc::new(trace));
    }
    Ok(())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    // A day in milliseconds, a terabit: a larger value is a mistake, and would overflow later.
    if (0.0..=86_400_000.0).contains(&value) { Ok(value) } else { Err("from 0 to 86400000".to_owned()) }
}

/// Reads the name of a level.
pub(super) fn level(text: &str) -> Result<RigLevel, String> {
    let found = RigLevel::ALL.into_iter().find(|level| level.word() == text);
    found.ok_or_else(|| "netns, veth or loopback".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_make_no_link_are_refused() {
        for wrong in ["-1", "nan", "inf", "1e12", ""] {
            assert!(not_negative(wrong).is_err(), "{wrong}");
        }
        assert_eq!(not_negative("2.5"), Ok(2.5));
    }
}
