//! Random sequences of all possible events of a store, with invariants that are checked after every step.
//!
//! A script is a list of three bytes each: the event, its object, and its variant. Any bytes are a script, so that a property test needs no
//! strategy of its own. The world beside the store knows the events that a push service would have seen, and checks the following. The
//! books balance after every step. No delivery is sent after its end. Deliveries that may have been sent before are marked ambiguous. No
//! queued chunk is without a ticket. Histories and books agree. In the end nothing is stuck.

mod ending;
mod expected;
mod sending;
mod settling;
mod world;

use std::collections::BTreeSet;

use super::StoreHome;
use world::World;

/// One step: the event, its object, and its variant.
pub type ModelStep = (u8, u8, u8);

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRun {
    /// The books of all campaigns after each step, and the values that the step recorded.
    pub observations: Vec<String>,
    /// The kinds of events that occurred, to check that scripts reach them.
    pub reached: BTreeSet<&'static str>,
}

/// Runs a script on an empty store and checks everything on the way.
pub async fn run(home: &dyn StoreHome, script: &[ModelStep]) -> ModelRun {
    let mut world = World::new(home).await;
    for (what, which, how) in script {
        world.step(*what, *which as usize, *how).await;
        world.observe().await;
    }
    world.drain().await;
    world.observe().await;
    world.check_histories().await;
    world.into_run()
}

/// Runs a script on two empty stores, which must show the same after every step.
pub async fn agree(one: &dyn StoreHome, other: &dyn StoreHome, script: &[ModelStep]) {
    let (one, other) = (run(one, script).await, run(other, script).await);
    let pairs = one.observations.iter().zip(&other.observations).enumerate();
    for (step, (left, right)) in pairs {
        let did = script.get(step);
        assert_eq!(left, right, "the engines differ after step {step}, {did:?}");
    }
    assert_eq!(one, other, "the engines differ");
}
