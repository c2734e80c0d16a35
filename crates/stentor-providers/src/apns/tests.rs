use std::sync::Arc;

use stentor_core::chunk::TokenList;
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Priority, Ttl};
use stentor_core::ports::clock::Timestamp;
use stentor_core::target::Target;

use super::*;

fn batch() -> Batch {
    let spec = MessageSpec {
        target: Target::Everyone,
        content: Content::default(),
        priority: Priority::High,
        ttl: Ttl::default(),
        collapse_key: None,
    };
    let now = Timestamp::from_millis(0);
    let id = MessageId::from_raw(0x0123_4567_89ab_cdef);
    let message =
        Message { id, app: AppId::from_raw(1), spec, created_at: now, due_at: now, occurrence: None };
    Batch { message: Arc::new(message), now, devices: Vec::new(), tokens: TokenList::default() }
}

#[test]
fn an_apns_id_is_the_delivery_s_number_as_a_uuid() {
    let id = apns_id(&batch(), DeviceId::from_raw(0x7edc_ba98_7654_3210));
    assert_eq!(id, "01234567-89ab-cdef-7edc-ba9876543210");
}

#[test]
fn a_device_token_is_an_even_number_of_hexadecimal_digits() {
    for good in ["a".repeat(64), "0F".repeat(32), "b".repeat(160)] {
        assert!(is_device_token(&good), "{good}");
    }
    for bad in
        [String::new(), "a".repeat(62), "a".repeat(65), "g".repeat(64), "a".repeat(202), "/".repeat(64)]
    {
        assert!(!is_device_token(&bad), "{bad}");
    }
}
