use stentor_core::id::{DeviceId, MessageId};

use super::*;

#[test]
fn an_apns_id_is_the_delivery_s_number_as_a_uuid() {
    let message = MessageId::from_raw(0x0123_4567_89ab_cdef);
    let id = apns_id(message, DeviceId::from_raw(0x7edc_ba98_7654_3210)).to_string();
    assert_eq!(id, "01234567-89ab-cdef-7edc-ba9876543210");
}

#[test]
fn a_device_token_is_an_even_number_of_hexadecimal_digits() {
    for good in [64, 160, 202, 320, 4_096].map(|digits| "0F".repeat(digits / 2)) {
        assert!(is_device_token(&good), "{good}");
    }
    for bad in
        [String::new(), "a".repeat(62), "a".repeat(65), "g".repeat(64), "a".repeat(4_098), "/".repeat(64)]
    {
        assert!(!is_device_token(&bad), "{bad}");
    }
}
