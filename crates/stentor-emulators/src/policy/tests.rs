//! Policies decide the same for the same token and attempt, in the documented order.

use super::*;
use crate::dice::RequestRng;
use serde_json::{Value, json};
use std::time::Duration;

const DIALECT: Dialect =
    Dialect { knows: |code| !code.starts_with("No"), quota_code: "Quota", realistic: WeightedMix::default };

fn judge(policy: Value) -> Judge {
    Judge::new(serde_json::from_value(policy).unwrap(), 1, DIALECT).unwrap()
}

fn code(judge: &Judge, token: &str, hash: u64, attempt: u32) -> String {
    match judge.decide(token, hash, attempt, 1).verdict {
        ScriptedAnswer::Error(refusal) => refusal.code,
        other => format!("{other:?}"),
    }
}

#[test]
fn the_default_accepts_at_once() {
    let decision = judge(json!({})).decide("a", 1, 1, 1);
    assert_eq!((decision.verdict, decision.wait), (ScriptedAnswer::Accept, Wait::None));
}

#[test]
fn a_script_is_followed_per_token_and_then_ends() {
    let judge = judge(json!({"scripts": [{"prefix": "a", "then": {"error": {"code": "Last"}}, "answers": [
        {"answer": {"error": {"code": "First"}}, "times": 2},
        {"answer": "accept"},
    ]}]}));
    for hash in [1, 2] {
        let found: Vec<String> = (1..=5).map(|attempt| code(&judge, "ab", hash, attempt)).collect();
        assert_eq!(found, ["First", "First", "Accept", "Last", "Last"]);
    }
    assert_eq!(code(&judge, "b", 3, 1), "Accept");
}

#[test]
fn a_script_for_a_share_is_about_the_same_tokens_each_time_and_a_larger_share_about_those_too() {
    let tokens: Vec<String> = (0..20_000).map(|number| format!("device-{number}")).collect();
    let met = |share: u32| -> Vec<bool> {
        let judge = judge(json!({"scripts": [
            {"prefix": "", "tokens_per_million": share, "answers": [{"answer": {"error": {"code": "Once"}}}]},
        ]}));
        let first =
            tokens.iter().zip(1..).map(|(token, hash)| code(&judge, token, hash, 1) == "Once").collect();
        assert!(tokens.iter().zip(1..).all(|(token, hash)| code(&judge, token, hash, 2) == "Accept"));
        first
    };
    let count = |met: &[bool]| met.iter().filter(|one| **one).count();
    let (none, few, many, all) = (met(0), met(10_000), met(500_000), met(1_000_000));
    assert_eq!((count(&none), count(&all)), (0, 20_000));
    assert!((140..260).contains(&count(&few)), "{}", count(&few));
    assert!((9_500..10_500).contains(&count(&many)), "{}", count(&many));
    assert!(few.iter().zip(&many).all(|(few, many)| !few || *many));
    assert_eq!(few, met(10_000));
}

#[test]
fn a_share_above_all_tokens_is_refused() {
    let policy = json!({"scripts": [{"prefix": "", "tokens_per_million": 1_000_001}]});
    assert!(Judge::new(serde_json::from_value(policy).unwrap(), 1, DIALECT).is_err());
}

#[test]
fn a_scripted_stall_waits_for_release() {
    let judge = judge(json!({"scripts": [{"token": "a", "answers": [{"answer": "stall"}]}]}));
    assert_eq!(judge.decide("a", 1, 1, 1).wait, Wait::Released);
    assert_eq!(judge.decide("a", 1, 2, 1).wait, Wait::None);
}

#[test]
fn bursts_fail_the_end_of_every_period() {
    let judge = judge(json!({"bursts": {"every": 4, "length": 2, "error": {"code": "E"}}}));
    let found: String = (1..=8).map(|attempt| code(&judge, "a", 1, attempt)[..1].to_owned()).collect();
    assert_eq!(found, "AAEEAAEE");
}

#[test]
fn scripts_come_before_bursts_and_resets_before_both() {
    let judge = judge(json!({
        "resets": {"every": 3, "code": "cancel"},
        "scripts": [{"token": "a", "then": {"error": {"code": "Script"}}}],
        "bursts": {"every": 1, "length": 1, "error": {"code": "Burst"}},
    }));
    assert_eq!(code(&judge, "a", 1, 1), "Script");
    assert_eq!(code(&judge, "b", 2, 1), "Burst");
    assert_eq!(code(&judge, "a", 1, 2), "Reset(Cancel)");
}

#[test]
fn the_quota_refills_in_full_with_the_window() {
    let judge = judge(json!({"quota": {"messages": 3, "window_ms": 100_000}}));
    let found: Vec<String> = (1..=5).map(|attempt| code(&judge, "a", 1, attempt)).collect();
    assert_eq!(found, ["Accept", "Accept", "Accept", "Quota", "Quota"]);
}

#[test]
fn a_mix_keeps_its_weights_and_repeats_itself() {
    let policy = json!({"mix": {"accept": 70, "errors": [
        {"error": {"code": "Dead"}, "weight": 20, "per_token": true},
        {"error": {"code": "Busy"}, "weight": 10},
    ]}});
    let (first, second) = (judge(policy.clone()), judge(policy));
    let mut counts = [0_u32; 3];
    for hash in 1..=10_000 {
        let found = code(&first, "a", hash, 1);
        assert_eq!(found, code(&second, "a", hash, 1));
        if found == "Dead" {
            assert_eq!(code(&first, "a", hash, 2), "Dead", "a dead token stays dead");
        }
        counts[["Accept", "Dead", "Busy"].iter().position(|name| *name == found).unwrap()] += 1;
    }
    assert!((6800..7600).contains(&counts[0]), "{counts:?}");
    assert!((1850..2150).contains(&counts[1]), "{counts:?}");
    assert!((600..1100).contains(&counts[2]), "{counts:?}");
}

#[test]
fn latencies_keep_their_bounds_and_median() {
    let mut dice = RequestRng::new(1, 2, 3);
    let uniform = AnswerLatency::Uniform { min_ms: 2.0, max_ms: 4.0 };
    let lognormal = AnswerLatency::Lognormal { median_ms: 50.0, sigma: 0.5 };
    let mut below = 0;
    for _ in 0..2000 {
        let drawn = uniform.draw(&mut dice);
        assert!(drawn >= Duration::from_millis(2) && drawn <= Duration::from_millis(4));
        below += u32::from(lognormal.draw(&mut dice) < Duration::from_millis(50));
    }
    assert!((900..1100).contains(&below), "{below} of 2000 below the median");
}

#[test]
fn every_part_survives_json() {
    let policy = json!({
        "latency": {"kind": "lognormal", "median_ms": 50.0, "sigma": 0.5},
        "mix": "realistic",
        "scripts": [{"token": null, "prefix": "a", "answers": [{"answer": {"reset": "refused_stream"}, "times": 1}],
            "then": "stall"}],
        "quota": {"messages": 1, "window_ms": 1000},
        "bursts": {"every": 10, "length": 1, "error": {"code": "E", "retry_after_s": 1}},
        "stall": {"all": false, "every": 7, "tokens": [], "prefixes": [], "taken_over": true},
        "resets": {"every": 9, "code": "internal_error"},
        "goaway": {"after_requests": 5, "unprocessed": 2, "then": "close", "code": 0, "debug": "", "connections": 1},
        "streams": {"initial": 1, "after_reject": null, "steps": [{"after_requests": 3, "limit": 1}],
            "on_excess": "refuse"},
    });
    let parsed: Policy = serde_json::from_value(policy.clone()).unwrap();
    assert_eq!(serde_json::to_value(&parsed).unwrap(), policy);
}

#[test]
fn a_policy_with_a_foreign_error_is_refused() {
    let policy = Policy {
        bursts: Some(Bursts { every: 1, length: 1, error: ServiceError::new("NoSuch") }),
        ..Policy::default()
    };
    assert!(Judge::new(policy, 1, DIALECT).is_err());
}
