use super::*;

fn drafted(message: &Value) -> Result<MessageRequest, RpcStatus> {
    let body = json!({"message": message}).to_string();
    draft(&SendCall::read(body.as_bytes())?)
}

fn fits(message: &Value) -> MessageRequest {
    drafted(message).unwrap_or_else(|status| panic!("{message}: {status:?}"))
}

#[test]
fn a_duration_is_read_in_whole_seconds_within_four_weeks() {
    assert_eq!((seconds("3.5s"), seconds("0s"), seconds("2419200s")), (Some(3), Some(0), Some(2_419_200)));
    for wrong in
        ["", "s", "3", "-1s", "3.s", ".5s", "2419201s", "1e3s", "3.1234567890s", "99999999999999999999s"]
    {
        assert_eq!(seconds(wrong), None, "{wrong}");
    }
}

#[test]
fn what_is_for_all_is_ours_and_the_rest_goes_to_its_push_service() {
    let request = fits(&json!({"token": "t", "notification": {"title": "T"}, "data": {"k": "v"},
        "android": {"ttl": "3.5s", "priority": "normal", "collapse_key": "news", "direct_boot_ok": true},
        "apns": {"headers": {"apns-priority": "5"}, "payload": {"aps": {}}, "fcm_options": {"image": "i"}},
        "webpush": {"headers": {"Urgency": "high"}}, "fcm_options": {"analytics_label": "judges"}}));
    assert_eq!((request.ttl_seconds, request.priority), (Some(3), Priority::Normal));
    assert_eq!(request.collapse_key.as_deref(), Some("news"));
    let label = json!({"analyticsLabel": "judges"});
    let fcm = json!({"directBootOk": true, "fcmOptions": label, "apns": {"fcmOptions": {"image": "i"}},
        "webpush": {"headers": {"Urgency": "high"}, "fcmOptions": label}});
    assert_eq!(json!(request.overrides[&ProviderKind::Fcm]), fcm);
    let apns = json!({"headers": {"apns-priority": "5"}, "payload": {"aps": {}}});
    assert_eq!(json!(request.overrides[&ProviderKind::Apns]), apns);
}

#[test]
fn data_alone_is_of_normal_priority_and_nothing_at_all_is_a_message_too() {
    assert_eq!(fits(&json!({"token": "t", "data": {"k": "v"}})).priority, Priority::Normal);
    assert_eq!(fits(&json!({"token": "t", "notification": {"body": "b"}})).priority, Priority::High);
    let empty = fits(&json!({"token": "t"}));
    assert_eq!(json!(empty.overrides[&ProviderKind::Fcm]), json!({"priority": "NORMAL"}));
}

#[test]
fn the_newer_form_of_androids_part_replaces_the_older_and_both_are_refused() {
    let part =
        json!({"remote_notification": {"mutable_content": true}, "ttl": "60s", "collapse_key": "score"});
    let newer = fits(&json!({"token": "t", "data": {"k": "v"}, "android_v2": part}));
    let expected = json!({"androidV2": {"remoteNotification": {"mutableContent": true}}});
    assert_eq!(json!(newer.overrides[&ProviderKind::Fcm]), expected);
    assert_eq!((newer.ttl_seconds, newer.collapse_key.as_deref()), (Some(60), Some("score")));
    assert_eq!(newer.priority, Priority::High, "a notification is urgent");
    let silent = fits(&json!({"token": "t", "android_v2": {"background_sync": {}}}));
    assert_eq!(silent.priority, Priority::Normal);
    assert!(drafted(&json!({"token": "t", "android": {}, "android_v2": {}})).is_err());
}

#[test]
fn what_the_reference_forbids_is_refused() {
    for (message, what) in [
        (json!({"token": "t", "data": {"from": "x"}}), "a reserved key"),
        (json!({"token": "t", "data": {"google.x": "x"}}), "a reserved prefix"),
        (
            json!({"token": "t", "android": {"data": {"message_type": "x"}}}),
            "a reserved key of Android's part",
        ),
        (json!({"token": "t", "data": {"k": 1}}), "a value that is no text"),
        (json!({"token": "t", "data": "k"}), "data that is no object"),
        (json!({"token": "t", "notification": {"sound": "x"}}), "a field that is Android's alone"),
        (json!({"token": "t", "android": {"ttl": 3}}), "a ttl that is a number"),
        (json!({"token": "t", "android": {"priority": "urgent"}}), "a priority that is none"),
        (json!({"token": "t", "webpush": 1}), "a part that is no object"),
        (json!({"token": "t", "fcm_options": {"analytics_label": "a b"}}), "a label that is none"),
        (json!({"topic": "t", "data": {"k": "x".repeat(2_048)}}), "too much for a topic"),
    ] {
        assert!(drafted(&message).is_err(), "{what}");
    }
    assert!(drafted(&json!({"token": "t", "data": {"k": "x".repeat(2_048)}})).is_ok());
}
