//! The histories of single deliveries, as the API has them.

use crate::client::{ApiClient, segment};
use crate::devices::{DevicePopulation, PopulationMember};
use crate::reporter::Reporter;
use crate::text::cell;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The most that the API lists at once.
const DEVICES_PER_PAGE: u64 = 1000;
/// Enough to hide the way of each; the campaign is over, so nothing is measured beside them.
const REQUESTS_AT_ONCE: usize = 16;

/// The ledger's history of one delivery, with its attempts summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeliveryHistory {
    /// Its final state; `None` when it has none.
    pub state: Option<String>,
    /// True if any attempt is marked ambiguous.
    pub ambiguous: bool,
    /// The number of attempts that were written and never answered.
    pub unanswered: u32,
}

/// Fetches the histories of a message at these devices. Devices that the API does not list have none.
pub(super) async fn fetch(
    client: &ApiClient,
    population: DevicePopulation,
    message: &str,
    about: &HashSet<PopulationMember>,
    reporter: &dyn Reporter,
) -> anyhow::Result<HashMap<PopulationMember, DeliveryHistory>> {
    if about.is_empty() {
        return Ok(HashMap::new());
    }
    let ids = find_ids(client, population, about, reporter).await?;
    let mut progress = reporter.begin("questions", ids.len() as u64);
    let requests = ids
        .into_iter()
        .map(|(member, id)| async move { anyhow::Ok((member, fetch_one(client, message, &id).await?)) });
    let mut answers = stream::iter(requests).buffer_unordered(REQUESTS_AT_ONCE);
    let mut histories = HashMap::new();
    while let Some((member, history)) = answers.try_next().await? {
        histories.insert(member, history);
        progress.update(histories.len() as u64);
    }
    progress.finish(histories.len() as u64);
    Ok(histories)
}

/// Fetches the history of a message at one device.
pub(super) async fn fetch_one(
    client: &ApiClient,
    message: &str,
    device: &str,
) -> anyhow::Result<DeliveryHistory> {
    let path = format!("/v1/messages/{}/deliveries/{}", segment(message), segment(device));
    Ok(summed_up(&client.get(&path).await?))
}

/// Finds the ids of devices by listing them all, because only the server knows the id of each token.
async fn find_ids(
    client: &ApiClient,
    population: DevicePopulation,
    about: &HashSet<PopulationMember>,
    reporter: &dyn Reporter,
) -> anyhow::Result<Vec<(PopulationMember, String)>> {
    let (mut found, mut listed, mut after) = (Vec::new(), 0, None::<String>);
    let mut progress = reporter.begin("listing", population.devices());
    loop {
        let mut query = vec![("limit", DEVICES_PER_PAGE.to_string())];
        query.extend(after.map(|after| ("after", after)));
        let page = client.get_with("/v1/devices", &query).await?;
        for device in page["devices"].as_array().into_iter().flatten() {
            listed += 1;
            if let Some(member) = population.recognize(device).filter(|member| about.contains(member)) {
                found.push((member, cell(&device["id"])));
            }
        }
        progress.update(listed);
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() {
            progress.finish(listed);
            return Ok(found);
        }
    }
}

fn summed_up(answer: &Value) -> DeliveryHistory {
    let attempts = answer["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_final = |state: &&str| !matches!(*state, "queued" | "sending");
    let state = attempts.iter().filter_map(|attempt| attempt["state"].as_str()).find(is_final);
    let ambiguous = attempts.iter().any(|attempt| attempt["ambiguous"] == true);
    let unanswered = attempts.iter().filter(|attempt| attempt["reason"] == "unanswered").count() as u32;
    DeliveryHistory { state: state.map(str::to_owned), ambiguous, unanswered }
}

#[cfg(test)]
mod tests;
