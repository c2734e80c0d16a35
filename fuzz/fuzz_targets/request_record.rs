//! Accepted requests can be read back: a body of the REST API, its stored record, and the same again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use serde_json::from_str;
use stentor_core::message::MessageSpec;
use stentor_server::contract::messages::MessageRequest;
use stentor_server::contract::schedules::ScheduleRequest;

fuzz_target!(|text: &str| {
    let message = from_str::<MessageRequest>(text);
    let schedule = from_str::<ScheduleRequest>(text).map(|schedule| schedule.message);
    for request in [message, schedule].into_iter().flatten() {
        if let Ok(spec) = request.spec() {
            assert_eq!(MessageSpec::decode(&spec.encode().expect("a record")), Some(spec));
        }
    }
});
