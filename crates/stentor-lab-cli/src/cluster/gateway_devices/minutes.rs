//! A schedule that fires each minute: each minute has exactly one campaign, even if servers die.

use super::super::caller::{ClusterCaller, ClusterRequest, RETRY_PAUSE};
use super::super::faults_state::PATIENCE;
use super::messages::{GatewayLog, GatewayPromise, GatewayTarget};
use anyhow::Context;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;
use stentor_stage::client::segment;
use stentor_stage::text::cell;

const MINUTE_SECONDS: i64 = 60;

/// The schedule on the servers.
pub(super) struct MinuteSchedule {
    caller: ClusterCaller,
    path: String,
    /// Time of the first occurrence.
    first: Timestamp,
}

/// Occurrences of the schedule.
#[derive(Debug, Default)]
pub(super) struct MinuteOccurrences {
    /// Its campaigns, by their due time.
    fired: BTreeMap<Timestamp, Vec<GatewayPromise>>,
    /// Violations that were found.
    pub(super) broken: Vec<String>,
}

impl MinuteSchedule {
    /// Creates the schedule.
    pub(super) async fn begin(mut caller: ClusterCaller) -> anyhow::Result<Self> {
        let message = json!({"target": "everyone", "data": {"number": "minute"}, "exact": true});
        let body = json!({"cron": "* * * * *", "time_zone": "UTC", "catch_up": "all", "message": message});
        let request = ClusterRequest::Post { path: "/v1/schedules", key: "minutes".to_owned(), body };
        let made = caller.insist(&request).await.with_context(|| format!("no schedule: {:?}", caller.log))?;
        let first = instant(&made["next_due"]).context("the schedule has no next time")?;
        Ok(Self { caller, path: format!("/v1/schedules/{}", segment(&cell(&made["id"]))), first })
    }

    /// Cancels the schedule once it has fired all due occurrences, and returns them; campaigns in `log` are not occurrences.
    pub(super) async fn finish(mut self, log: &GatewayLog) -> MinuteOccurrences {
        let mut found = MinuteOccurrences::default();
        let next_due = self.until_caught_up().await;
        self.caller.insist(&ClusterRequest::Act(format!("{}/cancel", self.path))).await;
        let known = log.promises.iter().map(|promise| promise.campaign.clone()).collect();
        let is_listed = self.list(&known, &mut found).await;
        match next_due {
            Some(next_due) if is_listed => found.check(self.first, next_due),
            _ => found.broken.push(format!("the schedule: {:?}", self.caller.log)),
        }
        found
    }

    /// Waits until all due occurrences have fired; returns the time of the next one.
    async fn until_caught_up(&mut self) -> Option<Timestamp> {
        let begun = Instant::now();
        loop {
            let shown = self.caller.insist(&ClusterRequest::Show(self.path.clone())).await?;
            let next_due = instant(&shown["next_due"])?;
            if next_due > Timestamp::now() || begun.elapsed() > PATIENCE {
                return Some(next_due);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Lists campaigns on full minutes that are not in `known`; returns true if the list is complete.
    async fn list(&mut self, known: &HashSet<String>, found: &mut MinuteOccurrences) -> bool {
        let mut before = String::new();
        loop {
            let path = format!("/v1/campaigns?limit=1000{before}");
            let Some(page) = self.caller.insist(&ClusterRequest::Show(path)).await else { return false };
            for campaign in page["campaigns"].as_array().into_iter().flatten() {
                found.note(campaign, known);
            }
            match page["next"].as_str() {
                Some(next) => before = format!("&before={}", segment(next)),
                None => return true,
            }
        }
    }
}

impl MinuteOccurrences {
    fn note(&mut self, campaign: &Value, known: &HashSet<String>) {
        let id = cell(&campaign["id"]);
        let Some(due) = instant(&campaign["due_at"]) else { return };
        if known.contains(&id) || due.as_millisecond() % (MINUTE_SECONDS * 1_000) != 0 {
            return;
        }
        let promise = GatewayPromise {
            message: cell(&campaign["message"]),
            campaign: id,
            target: GatewayTarget::Everyone,
            is_short: false,
        };
        self.fired.entry(due).or_default().push(promise);
    }

    /// Checks that each minute from `first` to before `next_due` has one campaign.
    fn check(&mut self, first: Timestamp, next_due: Timestamp) {
        let mut minute = first;
        while minute < next_due {
            let count = self.fired.get(&minute).map_or(0, Vec::len);
            if count != 1 {
                self.broken.push(format!("the minute {minute} has {count} campaigns"));
            }
            minute += MINUTE_SECONDS.seconds();
        }
        // The next occurrence may have fired while the schedule was being canceled.
        let strange: Vec<_> =
            self.fired.keys().filter(|due| **due < first || **due > next_due).cloned().collect();
        self.broken.extend(strange.iter().map(|due| format!("{due} is no minute of the schedule")));
    }

    /// Lists its campaigns.
    pub(super) fn promises(&self) -> Vec<GatewayPromise> {
        self.fired.values().flatten().cloned().collect()
    }
}

fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_without_a_campaign_and_one_with_two_are_told() {
        let mut found = MinuteOccurrences::default();
        let known = HashSet::from(["cmp_known".to_owned()]);
        let campaign = |id: &str, due: &str| json!({"id": id, "message": "msg", "due_at": due});
        for (id, due) in [
            ("cmp_1", "2026-11-26T10:00:00Z"),
            ("cmp_known", "2026-11-26T10:01:00Z"),
            ("cmp_2", "2026-11-26T10:02:00Z"),
            ("cmp_3", "2026-11-26T10:02:00Z"),
            ("cmp_4", "2026-11-26T10:02:00.250Z"),
            ("cmp_5", "2026-11-26T10:03:00Z"),
        ] {
            found.note(&campaign(id, due), &known);
        }
        assert_eq!(found.promises().len(), 4);
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        found.check(at("2026-11-26T10:00:00Z"), at("2026-11-26T10:03:00Z"));
        let broken = [
            "the minute 2026-11-26T10:01:00Z has 0 campaigns",
            "the minute 2026-11-26T10:02:00Z has 2 campaigns",
        ];
        assert_eq!(found.broken, broken);
    }
}
