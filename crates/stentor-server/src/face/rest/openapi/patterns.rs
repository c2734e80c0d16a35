//! Patterns of the two small languages of the API: conditions over topics, and cron.

use stentor_core::limits::CONDITION_TOPICS_MAX_COUNT;
use stentor_core::name::TopicName;

/// Returns the pattern of conditions, with one level of parentheses.
pub(super) fn condition() -> String {
    // 16 longer names would make a longer condition than the server accepts.
    let topic = format!("!{{0,3}}'{}{{1,200}}' in topics", TopicName::RULE.alphabet.class());
    let operator = " (&&|\\|\\|) ";
    let per_level = 4;
    let (more, inside) = (CONDITION_TOPICS_MAX_COUNT - 1, per_level - 1);
    let term = format!("({topic}|!?\\({topic}({operator}{topic}){{0,{inside}}}\\))");
    format!("^({topic}({operator}{topic}){{0,{more}}}|{term}({operator}{term}){{0,{inside}}})$")
}

/// Returns the pattern of cron expressions: `*`, numbers, names, ranges, steps and lists. A day that exists in none of the months does not
/// match.
pub(super) fn cron() -> String {
    let months = MONTHS.join("|");
    let minute = item("([1-5]?[0-9])", "([1-5]?[0-9])");
    let hour = item("(1?[0-9]|2[0-3])", "(1?[0-9]|2[0-3])");
    let day = item(DAY, DAY);
    let month = item(&format!("([1-9]|1[0-2]|{months})"), &format!("([1-9]|1[0-2]|{months})"));
    let day_of_week = item(DAY_OF_WEEK, DAY_OF_WEEK);
    let every_month = with(&day, &item("([1-9]|[12][0-9])", DAY));
    let long = item("([13578]|1[02]|JAN|MAR|MAY|JUL|AUG|OCT|DEC)", &format!("([1-9]|1[0-2]|{months})"));
    let dates = format!("({every_month} {}|{} {})", list(&month), list(&day), with(&month, &long));
    format!("^{} {} {dates} {}$", list(&minute), list(&hour), list(&day_of_week))
}

const DAY: &str = "([1-9]|[12][0-9]|3[01])";
const DAY_OF_WEEK: &str = "([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)";
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// Returns the pattern of an item: steps through the whole field, a value, or a range.
fn item(first: &str, last: &str) -> String {
    format!("(\\*/[1-9]|{first}(-{last}(/[1-9])?)?)")
}

fn list(item: &str) -> String {
    with(item, item)
}

/// Returns the pattern of a whole field, or of a list with a certain item.
fn with(item: &str, one: &str) -> String {
    if item == one {
        return format!("(\\*|{item}(,{item})*)");
    }
    format!("(\\*|({item},)*{one}(,{item})*)")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::string::string_regex;
    use serde_json::{Value, json};
    use stentor_core::app::Credential;
    use stentor_core::device::ProviderKind;
    use stentor_core::id::AppId;
    use stentor_core::limits::CONDITION_MAX_BYTES;
    use stentor_core::name::TimeZoneName;
    use stentor_core::ports::provider::CredentialError;
    use stentor_core::schedule::{CatchUp, Recurrence};
    use stentor_core::time::Timestamp;
    use stentor_core::topic::Condition;

    use super::*;
    use crate::clock::SystemClock;
    use crate::pipeline::calendar::next_tick;

    fn texts(pattern: String) -> impl Strategy<Value = String> {
        string_regex(pattern.trim_matches(['^', '$'])).expect("a pattern")
    }

    fn text(name: &str) -> String {
        super::super::words::schemas()[name]["pattern"].as_str().expect("a pattern").to_owned()
    }

    fn credential(provider: ProviderKind, secret: &Value) -> Result<(), CredentialError> {
        let (app, secret, updated_at) = (AppId::from_raw(1), secret.to_string(), Timestamp::default());
        let credential = Credential { app, provider, secret, updated_at };
        crate::providers::check_credential(&credential, Arc::new(SystemClock))
    }

    fn tick(cron: &str) -> Option<Timestamp> {
        let (cron, time_zone) = (cron.to_owned(), TimeZoneName::new("UTC").expect("a name"));
        let recurrence = Recurrence { cron, time_zone, until: None, catch_up: CatchUp::Once, exact: false };
        next_tick(&recurrence, Timestamp::from_millis(1_790_000_000_000)).expect("reads")
    }

    proptest! {
        #[test]
        fn every_condition_of_the_pattern_is_taken(text in texts(condition())) {
            prop_assert!(text.len() > CONDITION_MAX_BYTES || Condition::parse(&text).is_ok(), "{text}");
        }

        #[test]
        fn every_text_of_the_pattern_of_a_rule_has_its_alphabet(
            (rule, text) in prop::sample::select(super::super::words::RULES.to_vec())
                .prop_flat_map(|rule| (Just(rule), texts(rule.pattern()))),
        ) {
            prop_assert!(rule.alphabet.spells(&text), "{}: {text}", rule.name);
        }

        #[test]
        fn every_address_of_the_patterns_is_taken(endpoint in texts(text("Endpoint")), url in texts(text("Url"))) {
            let account = json!({
                "type": "service_account", "project_id": "p", "client_email": "e", "private_key_id": "k",
                "private_key": "none",
            });
            let secret = json!({"service_account": account, "endpoint": endpoint, "token_endpoint": url});
            let refused = credential(ProviderKind::Fcm, &secret).expect_err("there is no key");
            prop_assert_eq!(refused.into_invalid().field, "service_account.private_key");
        }

        #[test]
        fn every_cron_of_the_pattern_fires_some_day(text in texts(cron())) {
            prop_assert!(tick(&text).is_some(), "{text}");
        }
    }
}
