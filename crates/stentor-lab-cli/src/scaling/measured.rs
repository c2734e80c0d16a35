//! Costs as `stentor lab bench pipeline --json` measured them.

use super::ScalingCosts;
use serde_json::{Value, json};

/// Costs of a measured campaign through some servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeasuredRun {
    /// Number of servers.
    pub(crate) nodes: u32,
    pushes_per_second: f64,
    server_us_per_push: f64,
    database_us_per_push: f64,
    queue_us_per_push: Option<f64>,
}

impl MeasuredRun {
    /// Reads the result of a benchmark over PostgreSQL. The error names the missing value.
    pub(crate) fn read(result: &Value) -> Result<Self, String> {
        let number = |name: &str| {
            let value = result[name].as_f64().filter(|value| *value >= 0.0);
            value
                .ok_or_else(|| format!("{name} is missing: it is not of lab bench pipeline --store postgres"))
        };
        let pushes = number("accepted")? + number("rejected")?;
        if pushes < 1.0 {
            return Err("nothing was sent".to_owned());
        }
        let us = |seconds: f64| seconds * 1e6 / pushes;
        Ok(Self {
            nodes: result["nodes"].as_array().map_or(1, |nodes| nodes.len().max(1) as u32),
            pushes_per_second: number("pushes_per_second")?,
            server_us_per_push: us(number("server_cpu_seconds")?),
            database_us_per_push: us(number("postgres_cpu_seconds")?),
            queue_us_per_push: result["nats_cpu_seconds"].as_f64().map(us),
        })
    }

    /// Finds the run for a number of servers: that number, else the next smaller one, else the smallest.
    pub(crate) fn nearest(runs: &[Self], nodes: u32) -> Option<&Self> {
        let below = runs.iter().filter(|run| run.nodes <= nodes).max_by_key(|run| run.nodes);
        below.or_else(|| runs.iter().min_by_key(|run| run.nodes))
    }

    /// Returns these costs. The benchmark does not separate the ledger's share of the database's time, so that share comes from `others`.
    pub(crate) fn costs(&self, others: &ScalingCosts, chunk_max_devices: u64) -> ScalingCosts {
        let of_ledger = others.ledger_us_per_chunk / chunk_max_devices as f64;
        ScalingCosts {
            server_us_per_push: self.server_us_per_push,
            read_us_per_push: (self.database_us_per_push - of_ledger).max(0.0),
            ..*others
        }
    }

    /// Returns it as an object.
    pub(crate) fn object(&self) -> Value {
        json!({
            "nodes": self.nodes,
            "pushes_per_second": self.pushes_per_second,
            "server_us_per_push": self.server_us_per_push,
            "database_us_per_push": self.database_us_per_push,
            "queue_us_per_push": self.queue_us_per_push,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(nodes: usize, server_cpu_seconds: f64) -> Value {
        json!({
            "nodes": vec![json!({}); nodes],
            "accepted": 900_000,
            "rejected": 100_000,
            "pushes_per_second": 700_000.0,
            "server_cpu_seconds": server_cpu_seconds,
            "postgres_cpu_seconds": 1.0,
        })
    }

    #[test]
    fn costs_of_a_push_are_those_of_the_run_divided_by_its_pushes() {
        let run = MeasuredRun::read(&result(2, 0.5)).expect("a run");
        let others = ScalingCosts {
            server_us_per_push: 9.0,
            read_us_per_push: 9.0,
            ledger_us_per_chunk: 100.0,
            ledger_us_per_transaction: 7.0,
            answer_ms: 3.0,
        };
        let costs = run.costs(&others, 1_000);
        let expected = ScalingCosts { server_us_per_push: 0.5, read_us_per_push: 0.9, ..others };
        assert_eq!((run.nodes, costs), (2, expected));
    }

    #[test]
    fn the_nearest_run_has_as_many_servers_or_fewer() {
        let runs = [2, 4].map(|nodes| MeasuredRun::read(&result(nodes, 1.0)).expect("a run"));
        let nearest = |nodes| MeasuredRun::nearest(&runs, nodes).map(|run| run.nodes);
        assert_eq!([1, 2, 3, 4, 16].map(nearest), [2, 2, 2, 4, 4].map(Some));
        assert_eq!(MeasuredRun::nearest(&[], 1), None);
    }

    #[test]
    fn a_result_on_the_file_is_refused_with_what_it_lacks() {
        let mut on_file = result(1, 1.0);
        on_file["postgres_cpu_seconds"] = Value::Null;
        let problem = MeasuredRun::read(&on_file).expect_err("no database");
        assert!(problem.starts_with("postgres_cpu_seconds is missing"), "{problem}");
    }
}
