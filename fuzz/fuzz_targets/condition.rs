//! Topic conditions: any text parses or is refused, and a parsed condition keeps its meaning when it is written and parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_core::topic::Condition;

fuzz_target!(|text: &str| {
    let Ok(condition) = Condition::parse(text) else { return };
    let has = |topic: &stentor_core::name::TopicName| topic.as_str().len() % 2 == 0;
    let again = Condition::parse(&condition.expr().to_string());
    if let Ok(again) = again {
        assert_eq!(again.expr().holds(&has), condition.expr().holds(&has));
    }
});
