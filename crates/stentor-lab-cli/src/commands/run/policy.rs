//! The emulators' answers in a cell; the known devices are always registered.

use serde_json::{Value, json};
use stentor_lab::plan::{CampaignCell, GROWTH_FROM, ProviderModel};
use stentor_stage::devices::StagedService;
use stentor_stage::policy::AnswerPolicy;

/// The policy of an emulator.
pub(super) fn of(
    cell: &CampaignCell,
    usual: ProviderModel,
    service: StagedService,
    known_tokens: &[String],
) -> Value {
    let answers = if cell.some_errors { AnswerPolicy::Realistic } else { AnswerPolicy::AcceptAll };
    let mut policy = answers.of(service);
    let ProviderModel { latency_median_ms, latency_sigma } = cell.latency(usual);
    if latency_median_ms > 0.0 {
        policy["latency"] =
            json!({"kind": "lognormal", "median_ms": latency_median_ms, "sigma": latency_sigma});
    }
    if let Some(exponent) = cell.latency_growth.filter(|_| latency_median_ms > 0.0) {
        policy["load"] = json!({"from_waiting": GROWTH_FROM, "exponent": exponent});
    }
    if let Some(percent) = cell.unregistered_percent.filter(|percent| *percent > 0) {
        policy["mix"] = unregistered(service, percent.min(100));
    }
    if cell.needs_own_devices() {
        let registered =
            known_tokens.iter().map(|token| json!({"token": token, "answers": [], "then": "accept"}));
        let mut scripts: Vec<Value> = registered.collect();
        scripts.extend(policy["scripts"].as_array().into_iter().flatten().cloned());
        policy["scripts"] = json!(scripts);
    }
    policy
}

fn unregistered(service: StagedService, percent: u32) -> Value {
    let code = match service {
        StagedService::Fcm => "UNREGISTERED",
        StagedService::Apns => "Unregistered",
        StagedService::Hms => "80300007",
        StagedService::Gcm => "NotRegistered",
        StagedService::WebPush | StagedService::Wns => "Gone",
    };
    json!({
        "accept": 100 - percent,
        "errors": [{"error": {"code": code}, "weight": percent, "per_token": true}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stentor_emulators::Policy;

    const USUAL: ProviderModel = ProviderModel { latency_median_ms: 30.0, latency_sigma: 0.4 };

    #[test]
    fn every_policy_is_one_that_the_emulators_take() {
        let known = ["known".to_owned()];
        for service in StagedService::USUAL {
            for percent in [None, Some(0), Some(50), Some(100)] {
                let cell = CampaignCell {
                    unregistered_percent: percent,
                    some_errors: percent.is_none(),
                    ..CampaignCell::default()
                };
                let policy = of(&cell, USUAL, service, &known);
                assert_eq!(policy["scripts"][0]["token"], "known", "{policy}");
                serde_json::from_value::<Policy>(policy).unwrap();
            }
        }
    }

    #[test]
    fn push_services_without_latency_have_none() {
        let at = |latency_ms| {
            of(&CampaignCell { latency_ms, ..CampaignCell::default() }, USUAL, StagedService::Fcm, &[])
        };
        assert_eq!(at(Some(0.0)), json!({}));
        assert_eq!(at(Some(50.0))["latency"], json!({"kind": "lognormal", "median_ms": 50.0, "sigma": 0.0}));
        assert_eq!(at(None)["latency"]["median_ms"], 30.0);
    }

    #[test]
    fn a_latency_that_grows_with_the_load_is_one_that_the_emulators_take() {
        let cell = CampaignCell { latency_growth: Some(1.15), ..CampaignCell::default() };
        let policy = of(&cell, USUAL, StagedService::Apns, &[]);
        assert_eq!(policy["load"], json!({"from_waiting": 20, "exponent": 1.15}));
        serde_json::from_value::<Policy>(policy).unwrap();
    }
}
