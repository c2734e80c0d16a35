//! The outcome of a run behind a link.

use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;
use stentor_rig::lateness::{Lateness, LatenessLimits};
use stentor_rig::{Capture, Link, Rig, RigLevel, Side, Traffic, Usage};
use stentor_terminal::output::{Output, line, note, thousands};

/// All results of a run.
pub(super) struct LinkRunOutcome {
    status: ExitStatus,
    took: Duration,
    level: RigLevel,
    link: Link,
    up: Traffic,
    down: Traffic,
    lateness: Lateness,
    device: Option<Usage>,
    server: Option<Usage>,
    capture: Capture,
    notes: Vec<String>,
}

impl LinkRunOutcome {
    pub(super) fn of(rig: &Rig, link: &Link, status: ExitStatus, took: Duration) -> Self {
        Self {
            status,
            took,
            level: rig.level(),
            link: link.clone(),
            up: rig.traffic(Side::Device),
            down: rig.traffic(Side::Server),
            lateness: rig.lateness(),
            device: rig.usage(Side::Device).ok(),
            server: rig.usage(Side::Server).ok(),
            capture: rig.end_capture(),
            notes: rig.notes().to_vec(),
        }
    }

    /// The exit code of the command, as a shell would return it.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        let by_signal = || self.status.signal().map_or(1, |signal| 128 + signal);
        u8::try_from(self.status.code().unwrap_or_else(by_signal)).unwrap_or(1)
    }

    /// Writes both captures and the notes.
    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        if !self.level.shapes() {
            note("no packets were seen, so no capture is written");
            return Ok(());
        }
        self.capture.write_pcap(Side::Device, file)?;
        self.capture.write_pcap(Side::Server, &beside(file, "-server", "pcap"))?;
        self.capture.write_notes(&beside(file, "-notes", "csv"))?;
        Ok(())
    }

    /// Prints the outcome: text to standard error, JSON to standard output, which otherwise belongs to the command.
    pub(super) fn print(&self, output: Output) -> anyhow::Result<()> {
        let complaint = self.lateness.complaint(LatenessLimits::default());
        if !output.is_json() {
            note(&self.text(complaint.as_deref()));
            return Ok(());
        }
        let object = json!({
            "exit_code": self.code(),
            "seconds": self.took.as_secs_f64(),
            "rig": self.level,
            "link": self.link,
            "up": self.up,
            "down": self.down,
            "lateness": self.lateness,
            "valid": complaint.is_none(),
            "invalid_reason": complaint,
            "usage": {"device": self.device, "server": self.server},
            "anatomy": self.capture.is_complete.then(|| self.capture.anatomy(Side::Device)),
            "notes": self.notes,
        });
        line(&object.to_string())
    }

    fn text(&self, complaint: Option<&str>) -> String {
        let way = |name: &str, traffic: &Traffic| {
            let lost = traffic.lost_packets + traffic.overflowed_packets + traffic.refused_packets;
            let (packets, bytes) = (thousands(traffic.sent_packets), thousands(traffic.sent_bytes));
            format!("{name} {packets} packets, {bytes} bytes, {lost} lost")
        };
        let seconds = self.took.as_secs_f64();
        let mut text = format!(
            "link {} ({}): {seconds:.2} s; {}; {}; late {}",
            self.link.name,
            self.level,
            way("up", &self.up),
            way("down", &self.down),
            self.lateness
        );
        for sentence in self.notes.iter().map(String::as_str).chain(complaint) {
            text.push_str(&format!("\nlink: {sentence}"));
        }
        text
    }
}

/// Returns the path of another file beside one, with a suffix of its name.
fn beside(file: &Path, after: &str, extension: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{stem}{after}.{extension}"))
}
