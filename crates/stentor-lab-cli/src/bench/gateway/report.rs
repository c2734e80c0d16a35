//! The results of the bench, as one object.

use super::GatewayOptions;
use serde_json::{Value, json};
use stentor_lab::statistics::Samples;

/// Messages to all devices.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessagesToAllRow {
    /// Deliveries per second, from the request for the message to the last device, message by message.
    pub(crate) rates: Samples,
    /// Milliseconds from the request to the last device.
    pub(crate) last_ms: Samples,
    /// Milliseconds from the request to the last receipt in the ledger.
    pub(crate) receipts_ms: Samples,
    /// The same rate for several messages at once.
    pub(crate) burst_rates: Samples,
    /// Processor seconds of the server for a thousand deliveries, with their receipts.
    pub(crate) server_cpu_per_thousand: f64,
    /// The same for several messages at once.
    pub(crate) burst_cpu_per_thousand: f64,
    /// Processor seconds of the devices' processes for a thousand deliveries.
    pub(crate) devices_cpu_per_thousand: f64,
    /// Missing deliveries.
    pub(crate) lost: u64,
    /// Repeated deliveries.
    pub(crate) repeats: u64,
    /// Receipts that are missing in the ledger.
    pub(crate) receipts_missing: u64,
}

/// Cost of connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionRow {
    /// Number of connections.
    pub(crate) connections: usize,
    /// Growth of the server's resident memory per connection.
    pub(crate) idle_bytes: f64,
    /// Logins with their subscriptions, per second.
    pub(crate) per_second: f64,
    /// Processor time of the server for each of them, in microseconds.
    pub(crate) server_cpu_us_each: f64,
    /// Messages to all of them.
    pub(crate) to_all: Option<MessagesToAllRow>,
}

/// Messages to single devices.
#[derive(Debug, Clone, Default)]
pub(crate) struct SinglesRow {
    /// Number of requested messages.
    pub(crate) messages: u64,
    /// Requested rate, per second.
    pub(crate) per_second: f64,
    /// Milliseconds from the request to the device.
    pub(crate) latency_ms: Samples,
    /// Messages that did not reach their device.
    pub(crate) lost: u64,
    /// Repeated messages.
    pub(crate) repeats: u64,
}

/// A kill of the server with a message under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct StormRow {
    /// Time from the kill until all devices were subscribed again.
    pub(crate) seconds_from_kill: f64,
    /// The same from the time at which the server reported that it is ready.
    pub(crate) seconds_from_start: f64,
    /// True if all devices returned.
    pub(crate) is_complete: bool,
    /// Failed attempts to connect, including those while the server was down.
    pub(crate) failed_attempts: u64,
    /// Devices that did not get the message.
    pub(crate) lost: u64,
    /// Devices that got the message again.
    pub(crate) repeats: u64,
    /// Receipts that are missing in the ledger.
    pub(crate) receipts_missing: u64,
}

/// A broker.
pub(super) struct BrokerRow {
    pub(super) name: &'static str,
    /// Its version and results, or the reason for which it was not measured.
    pub(super) measured: Result<(String, ConnectionRow), String>,
}

/// Results of the bench.
pub(crate) struct GatewayReport {
    options: GatewayOptions,
    load_before: f64,
    pub(super) rivals: Vec<BrokerRow>,
    /// Without TLS.
    pub(crate) clear: ConnectionRow,
    /// With TLS.
    pub(crate) tls: Option<ConnectionRow>,
    /// Messages to single devices.
    pub(crate) singles: Option<SinglesRow>,
    /// The return of all devices.
    pub(crate) storm: Option<StormRow>,
}

impl ConnectionRow {
    /// Adds the results of messages to all devices.
    pub(super) fn add(&mut self, to_all: MessagesToAllRow) {
        self.to_all = Some(to_all);
    }

    fn object(&self) -> Value {
        let to_all = self.to_all.clone().unwrap_or_default();
        json!({
            "idle_bytes_per_connection": self.idle_bytes.round(),
            "connects_per_second": self.per_second.round(),
            "server_cpu_us_per_connect": self.server_cpu_us_each,
            "broadcast_deliveries_per_second": to_all.rates.quantile(0.5).map(f64::round),
            "broadcast_last_ms": to_all.last_ms.quantile(0.5),
            "burst_deliveries_per_second": to_all.burst_rates.quantile(0.5).map(f64::round),
            "server_cpu_seconds_per_thousand": to_all.server_cpu_per_thousand,
            "burst_server_cpu_seconds_per_thousand": to_all.burst_cpu_per_thousand,
            "devices_cpu_seconds_per_thousand": to_all.devices_cpu_per_thousand,
            "lost": to_all.lost,
            "repeats": to_all.repeats,
            "rounds": {"broadcast_deliveries_per_second": to_all.rates, "broadcast_last_ms": to_all.last_ms},
        })
    }
}

impl GatewayReport {
    pub(super) fn of(options: &GatewayOptions, load_before: f64) -> Self {
        Self {
            options: options.clone(),
            load_before,
            rivals: Vec::new(),
            clear: ConnectionRow::default(),
            tls: None,
            singles: None,
            storm: None,
        }
    }

    /// Counts missing deliveries of the gateway, and receipts that are missing in the ledger.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let rows = [Some(&self.clear), self.tls.as_ref()];
        let rows = rows.into_iter().flatten().filter_map(|row| row.to_all.as_ref());
        let (lost, missing) = rows
            .map(|one| (one.lost, one.receipts_missing))
            .fold((0, 0), |(lost, missing), one| (lost + one.0, missing + one.1));
        let of_singles = self.singles.as_ref().map_or(0, |one| one.lost);
        let (of_storm, unreceipted) =
            self.storm.as_ref().map_or((0, 0), |one| (one.lost, one.receipts_missing));
        (lost + of_singles + of_storm, missing + unreceipted)
    }

    /// Returns true if nothing was lost and all devices returned.
    pub(crate) fn holds(&self) -> bool {
        self.lost() == (0, 0) && self.storm.as_ref().is_none_or(|storm| storm.is_complete)
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let (lost, receipts_missing) = self.lost();
        let to_all = self.clear.to_all.clone().unwrap_or_default();
        let mut object = self.clear.object();
        let own = json!({
            "commit": self.options.commit,
            "load_average_before": self.load_before,
            "connections": self.clear.connections,
            "device_processes": self.options.processes,
            "idle_bytes_per_connection_clear": self.clear.idle_bytes.round(),
            "idle_bytes_per_connection_tls": self.tls.as_ref().map(|tls| tls.idle_bytes.round()),
            "receipts_last_ms": to_all.receipts_ms.quantile(0.5),
            "receipts_missing": receipts_missing,
            "single_p99_ms": self.singles.as_ref().and_then(|one| one.latency_ms.quantile(0.99)),
            "lost": lost,
            "tls": self.tls.as_ref().map(ConnectionRow::object),
            "singles": self.singles.as_ref().map(SinglesRow::object),
            "storm": self.storm.as_ref().map(StormRow::object),
            "rivals": self.rivals.iter().map(BrokerRow::object).collect::<Vec<_>>(),
        });
        if let (Some(all), Value::Object(own)) = (object.as_object_mut(), own) {
            all.remove("idle_bytes_per_connection");
            all.extend(own);
        }
        object
    }

    /// Lists the rivals, each with its results, or with the reason for which it was not measured.
    pub(crate) fn rivals(&self) -> impl Iterator<Item = (&'static str, Result<&ConnectionRow, &str>)> {
        let row = |rival: &BrokerRow| rival.name;
        self.rivals.iter().map(move |rival| {
            (row(rival), rival.measured.as_ref().map(|(_, row)| row).map_err(String::as_str))
        })
    }
}

impl SinglesRow {
    fn object(&self) -> Value {
        json!({
            "messages": self.messages,
            "per_second": self.per_second,
            "latency_ms": {
                "p50": self.latency_ms.quantile(0.5),
                "p99": self.latency_ms.quantile(0.99),
                "max": self.latency_ms.quantile(1.0),
            },
            "lost": self.lost,
            "repeats": self.repeats,
        })
    }
}

impl StormRow {
    fn object(&self) -> Value {
        json!({
            "seconds_from_kill": self.seconds_from_kill,
            "seconds_from_start": self.seconds_from_start,
            "is_complete": self.is_complete,
            "failed_attempts": self.failed_attempts,
            "lost": self.lost,
            "repeats": self.repeats,
            "receipts_missing": self.receipts_missing,
        })
    }
}

impl BrokerRow {
    fn object(&self) -> Value {
        match &self.measured {
            Ok((version, row)) => {
                let mut object = row.object();
                if let Some(object) = object.as_object_mut() {
                    object.extend([
                        ("name".to_owned(), self.name.into()),
                        ("version".to_owned(), version.as_str().into()),
                    ]);
                }
                object
            }
            Err(missing) => json!({"name": self.name, "missing": missing}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> GatewayReport {
        let options = GatewayOptions {
            connections: 10,
            processes: 2,
            rounds: 1,
            burst: 1,
            singles_per_second: 1,
            singles_seconds: 1,
            brokers: super::super::BrokerChoice::None,
            broker_folder: None,
            commit: "none",
        };
        GatewayReport::of(&options, 0.0)
    }

    #[test]
    fn whatever_is_missing_anywhere_counts_as_lost() {
        let mut report = report();
        assert_eq!((report.lost(), report.holds()), ((0, 0), true));
        report.clear.add(MessagesToAllRow { lost: 1, receipts_missing: 10, ..MessagesToAllRow::default() });
        report.singles = Some(SinglesRow { lost: 2, ..SinglesRow::default() });
        let storm = StormRow { lost: 4, receipts_missing: 20, is_complete: true, ..StormRow::default() };
        report.storm = Some(storm);
        assert_eq!((report.lost(), report.holds()), ((7, 30), false));
        assert_eq!(report.object()["lost"], 7);
    }

    #[test]
    fn a_rival_that_is_missing_says_why() {
        let mut report = report();
        report.rivals.push(BrokerRow { name: "one", measured: Err("not installed".to_owned()) });
        assert_eq!(report.object()["rivals"], json!([{"name": "one", "missing": "not installed"}]));
    }
}
