//! The tests that only `cargo xtask ci --full` runs: one row a module.
//!
//! To move a module between the two, add or remove its row. `cargo test` knows nothing of this table and runs every test.

use crate::tidy::PromisedTests;

/// Tests that are left out of `cargo xtask ci`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FullOnly {
    /// The package that has them.
    package: &'static str,
    /// The beginning of their paths. A row that ends with `::` is a module, and does not take the regressions and the tests that the page
    /// of invariants names; any other row takes those too.
    path: &'static str,
    /// Reason for leaving them out.
    pub(crate) reason: &'static str,
}

impl FullOnly {
    /// Returns the row as the output names it.
    pub(crate) fn name(&self) -> String {
        match self.path.strip_suffix("::") {
            Some(module) => format!("{} {module}", self.package),
            None => format!("{} {}…", self.package, self.path),
        }
    }

    /// Returns true if the row takes this test.
    pub(crate) fn takes(&self, package: &str, test: &str, promised: &PromisedTests) -> bool {
        let is_spared = self.path.ends_with("::") && promised.contains(test);
        self.package == package && test.starts_with(self.path) && !is_spared
    }
}

const STUDIES: &str = "studies take minutes, and no promise to users rests on them";
const CLUSTERS: &str = "several servers on PostgreSQL take minutes";
const CLIENTS: &str = "its foreign client is installed by --full only";
const BROWSERS: &str = "browsers are installed by --full only";
const SERVERS: &str = "its foreign server is installed by --full only";
const NATS: &str = "nats-server is built by --full only";
const TOOLS: &str = "its tools are installed by --full only";
const LONGEST: &str = "it takes more than a minute";
const WAITS: &str = "it waits for time limits";

/// Builds a row.
const fn row(package: &'static str, path: &'static str, reason: &'static str) -> FullOnly {
    FullOnly { package, path, reason }
}

/// The table.
pub(crate) const FULL_ONLY: &[FullOnly] = &[
    // Stories of the program.
    row("stentor", "studies::", STUDIES),
    row("stentor", "abilities::", STUDIES),
    row("stentor", "push_studies::", STUDIES),
    row("stentor", "lab::", STUDIES),
    row("stentor", "features::", STUDIES),
    row("stentor", "energy::", STUDIES),
    row("stentor", "probe::", STUDIES),
    row("stentor", "subject::", STUDIES),
    row("stentor", "bench::", "benchmarks take minutes"),
    row("stentor", "device_clients::what_devices_cost", "a measurement takes more than a minute"),
    row("stentor", "clock::the_clocks_self_test", "a measurement takes more than half a minute"),
    row("stentor", "nodes::", CLUSTERS),
    row("stentor", "nodes::r2_", CLUSTERS),
    row("stentor", "nodes::r20_", NATS),
    row("stentor", "nodes::a_server_that_dies_while_its_clock", CLUSTERS),
    row("stentor", "node_duties::", CLUSTERS),
    row("stentor", "node_queues::", CLUSTERS),
    row("stentor", "node_reports::", CLUSTERS),
    row("stentor", "node_versions::", "the older version is built by --full only"),
    row("stentor", "nats", NATS),
    row("stentor", "floods::", "each flood lasts until a time limit ends it"),
    row("stentor", "half_open::", WAITS),
    row("stentor", "half_open::r16_", WAITS),
    row("stentor", "packaging::", TOOLS),
    row("stentor", "monitoring::", TOOLS),
    row("stentor", "traces::", TOOLS),
    row("stentor", "proxies::", TOOLS),
    row("stentor", "description::", "schemathesis is installed by --full only"),
    row("stentor", "generated_clients::", CLIENTS),
    row("stentor", "clients::the_python_client_and_what_uses_it_are_typed", CLIENTS),
    row("stentor", "clients::the_example_of_the_typescript", CLIENTS),
    row("stentor", "clients::the_typescript", CLIENTS),
    row("stentor", "device_clients::the_python_library_for_devices_and_what_uses_it_are_typed", CLIENTS),
    row("stentor", "device_clients::the_parts_of_the_java", CLIENTS),
    row("stentor", "device_clients::the_example_of_the_java", CLIENTS),
    row("stentor", "device_story::a_limited_device_in_java", CLIENTS),
    row("stentor", "sealed_messages::a_folder_with_keys_is_gone_on_with_in_java", CLIENTS),
    row("stentor", "sealed_messages::what_the_typescript", CLIENTS),
    row("stentor", "test_kits::firebase_admin_for_go", CLIENTS),
    row("stentor", "test_kits::the_kit_for_junit", CLIENTS),
    row("stentor", "test_kits::the_kit_for_node", CLIENTS),
    row("stentor", "test_kits::the_kit_for_pytest_and", CLIENTS),
    row("stentor", "pages::the_sessions_of_the_soap_page", CLIENTS),
    row("stentor", "pages::the_sessions_of_the_grpc_page", CLIENTS),
    row("stentor", "pages::the_sessions_of_the_clients", CLIENTS),
    row("stentor", "faces::the_soap_client_of_php", CLIENTS),
    row("stentor", "faces::cxf_", CLIENTS),
    row("stentor", "faces::woden_", CLIENTS),
    row("stentor", "faces::apache_", CLIENTS),
    row("stentor", "faces_grpc::grpcurl", CLIENTS),
    // Foreign clients of the emulators, the fronts and the gateway: those for Python judge in every run, one for each.
    row("stentor-judges", "browsers::", BROWSERS),
    row("stentor-judges", "documentation::", BROWSERS),
    row("stentor-judges", "console::", BROWSERS),
    row("stentor-judges", "apns::hapns_", CLIENTS),
    row("stentor-judges", "apns::node_apn_", CLIENTS),
    row("stentor-judges", "wns::node_pushnotifications_", CLIENTS),
    row("stentor-judges", "apns::pushy_", CLIENTS),
    row("stentor-judges", "ccs::smack_", CLIENTS),
    row("stentor-judges", "fcm::firebase_admin_for_node", CLIENTS),
    row("stentor-judges", "fcm_front::firebase_admin_for_node", CLIENTS),
    row("stentor-judges", "fcm_front::firebase_admin_for_go", CLIENTS),
    row("stentor-judges", "fcm_front::firebase_admin_for_java", CLIENTS),
    row("stentor-judges", "fcm_front::each_firebase_admin", CLIENTS),
    row("stentor-judges", "fronts::gcm_server", CLIENTS),
    row("stentor-judges", "fronts::node_gcm", CLIENTS),
    row("stentor-judges", "fronts::python_gcm", CLIENTS),
    row("stentor-judges", "gateway_ccs::smack_", CLIENTS),
    row("stentor-judges", "gateway_mcs::push_receiver", CLIENTS),
    row("stentor-judges", "gateway_mqtt::mosquitto", CLIENTS),
    row("stentor-judges", "gcm::gcm_server", CLIENTS),
    row("stentor-judges", "gcm::node_gcm", CLIENTS),
    row("stentor-judges", "gcm::python_gcm", CLIENTS),
    row("stentor-judges", "web_push::web_push_for_node", CLIENTS),
    row("stentor-judges", "web_push::webpush_go", CLIENTS),
    row("stentor-judges", "web_push_emulator::web_push_for_node", CLIENTS),
    row("stentor-judges", "web_push_emulator::webpush_go", CLIENTS),
    row("stentor-judges", "web_push_sender::", CLIENTS),
    row("stentor-gateway", "mcs::foreign::push_receiver", CLIENTS),
    // Foreign servers for the sender, and the brokers.
    row("stentor-http2", "foreign::nghttpd", SERVERS),
    row("stentor-http2", "foreign::the_server_of_go", SERVERS),
    row("stentor-http2", "foreign::netty", SERVERS),
    row("stentor-http2", "foreign::pushys_mock", SERVERS),
    row("stentor-storage", "nats", NATS),
    // Each is the longest of its program, and others try the same with fewer values, scripts and delays.
    row("stentor-storage", "postgres::model::whatever_happens_it_agrees", LONGEST),
    row("stentor-storage", "postgres_distance::with_160_ms", LONGEST),
    row("stentor-server", "pipeline::damage::a_damaged_value_of_one_app", LONGEST),
    row("stentor", "demo::a_server_that_is_killed_again_and_again_puts_few", LONGEST),
];

#[cfg(test)]
mod tests;
