//! Devices that are imported beside the campaign, a batch at a time.

use super::caller::{ClusterCaller, ClusterRequest};
use serde_json::json;
use std::ops::Range;
use stentor_stage::devices::DevicePopulation;

/// Imports devices, each with its topic if it has one, and repeats until all are kept; returns true if they are.
pub(crate) async fn import(
    caller: &mut ClusterCaller,
    population: DevicePopulation,
    places: Range<u64>,
    topic_of: impl Fn(u64) -> Option<String>,
) -> bool {
    let (mut lines, count) = (String::new(), places.end - places.start);
    for place in places {
        let member = population.member(place);
        let topics: Vec<String> = topic_of(place).into_iter().collect();
        let device = json!({"platform": member.service.platform(), "token": population.token(member), "topics": topics});
        lines.push_str(&format!("{device}\n"));
    }
    let Some(said) = caller.insist(&ClusterRequest::Import(lines)).await else { return false };
    let is_kept = said["failed"] == 0 && said["valid"] == count;
    if !is_kept {
        caller.log.strange.push(format!("an import: {said}"));
    }
    is_kept
}
