//! Options for the traffic of a radio: the trace, the device in it, and the coefficients.

use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use stentor_lab::energy::coefficients::{RADIOS, RadioModel};
use stentor_lab::energy::pcap::{CaptureContents, FILE_MAX_BYTES};
use stentor_lab::energy::processor::Processor;
use stentor_lab::energy::trace::{Direction, PacketTrace};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::note;

/// Options for the trace and the radio.
#[derive(Debug, Args)]
pub(super) struct TraceOptions {
    /// The packets: a pcap file (raw IP, Ethernet or Linux cooked), or a list (.csv) of seconds, up or down, bytes
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Name of the radio
    #[arg(long, value_parser = PossibleValuesParser::new(RADIOS), required_unless_present = "coefficients", value_name = "RADIO")]
    radio: Option<String>,
    /// Your own coefficients, in a TOML file like those that come with the program
    #[arg(long, value_name = "FILE", conflicts_with = "radio")]
    coefficients: Option<PathBuf>,
    /// The device's address in the capture; by default the sender of the first packet
    #[arg(long, value_name = "ADDRESS")]
    device_address: Option<IpAddr>,
}

/// Options for the processor.
#[derive(Debug, Args)]
pub(super) struct ProcessorOptions {
    /// Machine with the measured power of a busy processor
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(["raspberry-pi-b", "htc-dream", "nexus-one"]), conflicts_with = "cpu_watt")]
    processor: Option<String>,
    /// Power of the processor while it computes, in watts
    #[arg(long, value_name = "WATT")]
    cpu_watt: Option<f64>,
}

/// A trace, with the facts to print about it.
pub(super) struct RadioTraffic {
    pub(super) trace: PacketTrace,
    pub(super) model: RadioModel,
    pub(super) device: Option<IpAddr>,
    pub(super) is_device_guessed: bool,
    /// Packets of other hosts, and frames without IP.
    pub(super) left_out: u64,
    pub(super) is_cut: bool,
}

impl TraceOptions {
    /// Reads the files of these options.
    pub(super) fn open(&self) -> anyhow::Result<RadioTraffic> {
        let model = self.model()?;
        let bytes = read(&self.trace, FILE_MAX_BYTES)?;
        let wrong = |error| CommandFailure::usage(format!("{}: {error}", self.trace.display()));
        if self.trace.extension().is_some_and(|extension| extension == "csv") {
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim_start_matches('\u{feff}');
            let trace = PacketTrace::parse(text).and_then(PacketTrace::not_empty).map_err(wrong)?;
            let (device, is_device_guessed) = (None, false);
            return Ok(RadioTraffic { trace, model, device, is_device_guessed, left_out: 0, is_cut: false });
        }
        let capture = CaptureContents::read(&bytes).map_err(wrong)?;
        let device = self.device_address.or_else(|| capture.first_sender());
        let trace =
            device.map(|device| capture.trace(device)).unwrap_or_default().not_empty().map_err(wrong)?;
        if trace.bytes(Direction::Down) == 0 {
            note(
                "stentor: nothing in this capture goes to the device; on loopback both ends have one address and cannot be separated",
            );
        }
        let left_out = (capture.packets.len() - trace.packets().len()) as u64 + capture.others;
        let is_device_guessed = self.device_address.is_none();
        Ok(RadioTraffic { trace, model, device, is_device_guessed, left_out, is_cut: capture.is_cut })
    }

    fn model(&self) -> anyhow::Result<RadioModel> {
        if let Some(path) = &self.coefficients {
            let text = text(path)?;
            let wrong = |error| CommandFailure::usage(format!("{}: {error}", path.display()));
            return Ok(RadioModel::parse(&text).map_err(wrong)?);
        }
        let id = self.radio.as_deref().unwrap_or_default();
        RadioModel::built_in(id).with_context(|| format!("no coefficients of {id}"))
    }
}

impl ProcessorOptions {
    /// Returns the processor, if one was named.
    pub(super) fn open(&self) -> anyhow::Result<Option<Processor>> {
        if let Some(watt) = self.cpu_watt {
            return Ok(Some(
                Processor::stated(watt).map_err(|error| CommandFailure::usage(error.to_string()))?,
            ));
        }
        Ok(self.processor.as_ref().and_then(|id| Processor::all().into_iter().find(|one| one.id == *id)))
    }
}

/// Describes the address of the device.
pub(super) fn device(traffic: &RadioTraffic) -> String {
    match (traffic.device, traffic.is_device_guessed) {
        (Some(device), true) => format!("{device} (the first sender; --device-address names another)"),
        (Some(device), false) => device.to_string(),
        (None, _) => "as listed".into(),
    }
}

/// Reads a file. Fails if it is too large.
pub(super) fn read(path: &Path, max_bytes: u64) -> anyhow::Result<Vec<u8>> {
    let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    let mut bytes = Vec::new();
    let count = file.take(max_bytes + 1).read_to_end(&mut bytes);
    let count = count.with_context(|| format!("{} cannot be read", path.display()))?;
    if count as u64 > max_bytes {
        return Err(CommandFailure::usage(format!(
            "{} is larger than {max_bytes} bytes: cut it",
            path.display()
        ))
        .into());
    }
    Ok(bytes)
}

/// Reads a text. Bytes that are not UTF-8 are replaced, so that the parser reports their line.
pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    Ok(String::from_utf8_lossy(&read(path, FILE_MAX_BYTES)?).into_owned())
}
