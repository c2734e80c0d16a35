//! The expected gain of more servers over one database: measured costs, extended by a simulation.

mod measured;
mod simulation;
mod station;

pub(crate) use measured::MeasuredRun;
use serde_json::{Value, json};
use simulation::Simulation;

/// Measured costs of a push.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScalingCosts {
    /// Processor time of a server for one push, in microseconds.
    pub(crate) server_us_per_push: f64,
    /// Processor time of the database for reading one device and its token, in microseconds.
    pub(crate) read_us_per_push: f64,
    /// Processor time of the database for leasing and settling one chunk, in microseconds.
    pub(crate) ledger_us_per_chunk: f64,
    /// Further time of a transaction of the ledger, in microseconds: its round trips and its commit.
    pub(crate) ledger_us_per_transaction: f64,
    /// Response time of a push service, in milliseconds.
    pub(crate) answer_ms: f64,
}

/// The setting of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScalingShape {
    /// Number of servers.
    pub(crate) nodes: u32,
    /// Processors of each server.
    pub(crate) node_cores: u32,
    /// Processors of the database.
    pub(crate) database_cores: u32,
    /// Number of devices of the campaign.
    pub(crate) devices: u64,
    /// Largest chunk, in devices.
    pub(crate) chunk_max_devices: u64,
    /// Limit of unsettled deliveries of a server.
    pub(crate) unsettled_max_deliveries: u64,
    /// Seed of the times of single steps.
    pub(crate) seed: u64,
}

/// The result of a simulated campaign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScalingResult {
    /// The setting that was simulated.
    pub(crate) shape: ScalingShape,
    /// Time from the beginning to the last settled chunk.
    pub(crate) seconds: f64,
    /// Utilization of the servers' processors, 0 to 1.
    pub(crate) nodes_busy: f64,
    /// Utilization of the database's processors, 0 to 1.
    pub(crate) database_busy: f64,
    /// Share of the time in which a transaction of the ledger was open, 0 to 1.
    pub(crate) ledger_busy: f64,
    /// The bottleneck: the part that brings most if it is doubled.
    pub(crate) limit: &'static str,
}

impl ScalingResult {
    /// Returns the number of pushes settled per second.
    pub(crate) fn pushes_per_second(&self) -> f64 {
        self.shape.devices as f64 / self.seconds
    }

    /// Returns the result as a JSON object; shares of time are 0 to 1.
    pub(crate) fn object(&self) -> Value {
        json!({
            "nodes": self.shape.nodes,
            "node_cores": self.shape.node_cores,
            "database_cores": self.shape.database_cores,
            "devices": self.shape.devices,
            "pushes_per_second": self.pushes_per_second().round(),
            "nodes_busy": self.nodes_busy,
            "database_busy": self.database_busy,
            "ledger_busy": self.ledger_busy,
            "limit": self.limit,
        })
    }
}

/// Simulates one campaign; the same costs, shape and seed give the same result.
pub(crate) fn simulate(costs: &ScalingCosts, shape: ScalingShape) -> ScalingResult {
    let result = Simulation::new(costs, shape).run();
    ScalingResult { limit: limit(costs, &result), ..result }
}

/// Names the bottleneck: the part that brings most if it is doubled. Utilization does not show it: a transaction is nearly always open as
/// long as anything waits, with much or little in it.
fn limit(costs: &ScalingCosts, result: &ScalingResult) -> &'static str {
    let shape = result.shape;
    let lighter = ScalingCosts {
        ledger_us_per_chunk: costs.ledger_us_per_chunk / 2.0,
        ledger_us_per_transaction: costs.ledger_us_per_transaction / 2.0,
        ..*costs
    };
    let sooner = ScalingCosts { answer_ms: costs.answer_ms / 2.0, ..*costs };
    let parts = [
        ("the servers' processors", *costs, ScalingShape { node_cores: shape.node_cores * 2, ..shape }),
        (
            "the database's processors",
            *costs,
            ScalingShape { database_cores: shape.database_cores * 2, ..shape },
        ),
        ("the ledger's transactions", lighter, shape),
        ("the answers' time", sooner, shape),
    ];
    let seconds = |costs, shape| Simulation::new(&costs, shape).run().seconds;
    let tried = parts.map(|(name, costs, shape)| (seconds(costs, shape), name));
    tried.into_iter().min_by(|one, other| one.0.total_cmp(&other.0)).map_or("nothing", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: ScalingCosts = ScalingCosts {
        server_us_per_push: 0.5,
        read_us_per_push: 0.5,
        ledger_us_per_chunk: 200.0,
        ledger_us_per_transaction: 500.0,
        answer_ms: 1.0,
    };

    const SHAPE: ScalingShape = ScalingShape {
        nodes: 1,
        node_cores: 2,
        database_cores: 4,
        devices: 3_000_000,
        chunk_max_devices: 1_000,
        unsettled_max_deliveries: 100_000,
        seed: 1,
    };

    #[test]
    fn the_same_seed_gives_the_same_result_and_another_nearly_the_same() {
        let first = simulate(&COSTS, SHAPE);
        assert_eq!(first, simulate(&COSTS, SHAPE));
        let other = simulate(&COSTS, ScalingShape { seed: 2, ..SHAPE });
        assert!(first != other);
        assert!((first.seconds / other.seconds - 1.0).abs() < 0.05, "{first:?} {other:?}");
    }

    #[test]
    fn no_part_does_more_than_its_time_allows() {
        for nodes in [1, 2, 5, 16] {
            let result = simulate(&COSTS, ScalingShape { nodes, ..SHAPE });
            for busy in [result.nodes_busy, result.database_busy, result.ledger_busy] {
                assert!((0.0..=1.0).contains(&busy), "{result:?}");
            }
            // The time worked by the servers' processors is the cost of all pushes.
            let worked = result.nodes_busy * result.seconds * f64::from(nodes * SHAPE.node_cores);
            assert!((worked / 1.5 - 1.0).abs() < 0.05, "{worked} s of work, {result:?}");
        }
    }

    #[test]
    fn a_single_server_is_limited_by_its_own_processors_where_the_database_is_large() {
        let result = simulate(&COSTS, ScalingShape { node_cores: 1, database_cores: 16, ..SHAPE });
        assert_eq!(result.limit, "the servers' processors", "{result:?}");
        // A processor of half a microsecond for each push.
        assert!((result.pushes_per_second() / 2_000_000.0 - 1.0).abs() < 0.1, "{result:?}");
    }

    #[test]
    fn many_servers_are_limited_by_the_one_transaction_of_the_ledger() {
        let shape = ScalingShape { nodes: 16, database_cores: 64, devices: 20_000_000, ..SHAPE };
        let result = simulate(&COSTS, shape);
        assert_eq!(result.limit, "the ledger's transactions", "{result:?}");
        // 200 us for each chunk of 1,000 and something for each transaction: below five million.
        assert!(result.pushes_per_second() < 5_000_000.0, "{result:?}");
        let more = simulate(&COSTS, ScalingShape { nodes: 32, ..shape });
        assert!(more.pushes_per_second() < result.pushes_per_second() * 1.1, "{more:?}");
    }

    #[test]
    fn slow_answers_limit_by_what_may_be_unsettled() {
        let costs = ScalingCosts { answer_ms: 1_000.0, ..COSTS };
        let result = simulate(&costs, SHAPE);
        assert_eq!(result.limit, "the answers' time", "{result:?}");
        // A hundred thousand at once, each for a second.
        assert!(result.pushes_per_second() < 100_000.0, "{result:?}");
    }
}
