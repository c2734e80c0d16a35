//! A campaign through several servers, event by event.
//!
//! Each server has at most one transaction of the ledger under way, which takes all waiting chunks, like a group commit. Only one
//! transaction is open in the whole database. A read needs a processor of the database, and no lock.

use super::station::Station;
use super::{ScalingCosts, ScalingResult, ScalingShape};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Chunks that one transaction leases or settles.
const TRANSACTION_MAX_CHUNKS: u64 = 64;

/// A transaction of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Transaction {
    node: usize,
    leased: u64,
    settled: u64,
}

/// Work of the database's processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DatabaseWork {
    Ledger(Transaction),
    Read(usize),
}

/// The end of a step of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulatedEvent {
    DatabaseDone(DatabaseWork),
    Sent(usize),
    Answered(usize),
}

struct SimulatedNode {
    processors: Station<()>,
    /// Remaining chunks that it may lease.
    free: u64,
    to_settle: u64,
    is_writing: bool,
}

/// One campaign under way.
pub(super) struct Simulation<'a> {
    costs: &'a ScalingCosts,
    shape: ScalingShape,
    dice: StdRng,
    now_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, SimulatedEvent)>>,
    /// Events so far: two events at the same time happen in the order in which they were planned.
    planned: u64,
    nodes: Vec<SimulatedNode>,
    database: Station<DatabaseWork>,
    ledger: Station<Transaction>,
    to_lease: u64,
    open: u64,
}

impl<'a> Simulation<'a> {
    pub(super) fn new(costs: &'a ScalingCosts, shape: ScalingShape) -> Self {
        let node = || SimulatedNode {
            processors: Station::new(shape.node_cores),
            free: shape.unsettled_max_deliveries / shape.chunk_max_devices,
            to_settle: 0,
            is_writing: false,
        };
        let chunks = shape.devices.div_ceil(shape.chunk_max_devices);
        Self {
            costs,
            shape,
            dice: StdRng::seed_from_u64(shape.seed),
            now_ns: 0,
            events: BinaryHeap::new(),
            planned: 0,
            nodes: (0..shape.nodes).map(|_| node()).collect(),
            database: Station::new(shape.database_cores),
            ledger: Station::new(1),
            to_lease: chunks,
            open: chunks,
        }
    }

    /// Runs until every chunk is settled.
    pub(super) fn run(mut self) -> ScalingResult {
        (0..self.nodes.len()).for_each(|node| self.write(node));
        while self.open > 0 {
            let Some(Reverse((at, _, event))) = self.events.pop() else { break };
            self.now_ns = at;
            self.happen(event);
        }
        let busy: f64 = self.nodes.iter().map(|node| node.processors.busy(self.now_ns)).sum();
        ScalingResult {
            shape: self.shape,
            seconds: self.now_ns as f64 / 1e9,
            nodes_busy: busy / self.nodes.len() as f64,
            database_busy: self.database.busy(self.now_ns),
            ledger_busy: self.ledger.busy(self.now_ns),
            limit: "",
        }
    }

    fn happen(&mut self, event: SimulatedEvent) {
        match event {
            SimulatedEvent::DatabaseDone(work) => {
                if let Some(next) = self.database.free(self.now_ns) {
                    self.begin(next);
                }
                match work {
                    DatabaseWork::Ledger(transaction) => self.committed(transaction),
                    DatabaseWork::Read(node) => self.send(node),
                }
            }
            SimulatedEvent::Sent(node) => {
                if self.nodes[node].processors.free(self.now_ns).is_some() {
                    self.plan_send(node);
                }
                let wait = self.about(self.costs.answer_ms * 1_000.0);
                self.plan(wait, SimulatedEvent::Answered(node));
            }
            SimulatedEvent::Answered(node) => {
                self.nodes[node].to_settle += 1;
                self.write(node);
            }
        }
    }

    /// Opens the server's next transaction, if work waits and no transaction is under way.
    fn write(&mut self, node: usize) {
        let writer = &mut self.nodes[node];
        let leased = writer.free.min(self.to_lease).min(TRANSACTION_MAX_CHUNKS);
        let settled = writer.to_settle.min(TRANSACTION_MAX_CHUNKS);
        if writer.is_writing || leased + settled == 0 {
            return;
        }
        writer.is_writing = true;
        writer.free -= leased;
        writer.to_settle -= settled;
        self.to_lease -= leased;
        let transaction = Transaction { node, leased, settled };
        if let Some(first) = self.ledger.take(transaction, self.now_ns) {
            self.ask(DatabaseWork::Ledger(first));
        }
    }

    fn committed(&mut self, done: Transaction) {
        if let Some(next) = self.ledger.free(self.now_ns) {
            self.ask(DatabaseWork::Ledger(next));
        }
        self.open -= done.settled;
        self.nodes[done.node].free += done.settled;
        self.nodes[done.node].is_writing = false;
        for _ in 0..done.leased {
            self.ask(DatabaseWork::Read(done.node));
        }
        self.write(done.node);
    }

    /// Queues work for the database's processors.
    fn ask(&mut self, work: DatabaseWork) {
        if let Some(work) = self.database.take(work, self.now_ns) {
            self.begin(work);
        }
    }

    fn begin(&mut self, work: DatabaseWork) {
        let us = match work {
            // Each chunk is leased once and settled once: half of its cost for either.
            DatabaseWork::Ledger(Transaction { leased, settled, .. }) => {
                self.costs.ledger_us_per_transaction
                    + (leased + settled) as f64 * self.costs.ledger_us_per_chunk / 2.0
            }
            DatabaseWork::Read(_) => self.costs.read_us_per_push * self.shape.chunk_max_devices as f64,
        };
        let takes = self.about(us);
        self.plan(takes, SimulatedEvent::DatabaseDone(work));
    }

    fn send(&mut self, node: usize) {
        if self.nodes[node].processors.take((), self.now_ns).is_some() {
            self.plan_send(node);
        }
    }

    fn plan_send(&mut self, node: usize) {
        let takes = self.about(self.costs.server_us_per_push * self.shape.chunk_max_devices as f64);
        self.plan(takes, SimulatedEvent::Sent(node));
    }

    fn plan(&mut self, takes_ns: u64, event: SimulatedEvent) {
        self.planned += 1;
        self.events.push(Reverse((self.now_ns + takes_ns, self.planned, event)));
    }

    /// Returns a random time around `us` in nanoseconds, from half to one and a half of it.
    fn about(&mut self, us: f64) -> u64 {
        (us * 1_000.0 * self.dice.random_range(0.5..1.5)).round() as u64
    }
}
