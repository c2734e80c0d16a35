use proptest::prelude::*;
use stentor_core::id::CampaignId;

use super::*;

fn parent(values: &[&str]) -> Option<Parent> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append("traceparent", value.parse().expect("a value"));
    }
    Parent::of(&headers)
}

#[test]
fn the_trace_of_a_caller_is_read_with_its_wish() {
    let text = |flags| format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
    let place = SpanPlace { trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, span: 0xb7ad_6b71_6920_3331 };
    assert_eq!(parent(&[&text("01")]), Some(Parent { place, is_sampled: true }));
    assert_eq!(parent(&[&text("02")]), Some(Parent { place, is_sampled: false }));
    assert_eq!(parent(&[&text("01").replacen("00", "cc", 1)]), Some(Parent { place, is_sampled: true }));
    assert_eq!(
        parent(&[&format!("{}-what", text("01").replacen("00", "cc", 1))]).map(|one| one.place),
        Some(place)
    );
}

#[test]
fn a_malformed_parent_begins_a_new_trace() {
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for bad in [
        "",
        "00",
        &good.replace("b7ad6b7169203331", "0000000000000000"),
        &good.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
        &good.replacen("00", "ff", 1),
        &good.to_uppercase(),
        &format!("{good}-more"),
        &good[..good.len() - 1],
    ] {
        assert_eq!(parent(&[bad]), None, "{bad}");
    }
    assert_eq!(parent(&[good, good]), None, "two parents");
}

#[test]
fn every_server_samples_the_same_campaigns_and_about_the_share_that_is_asked_for() {
    let places = || (1..=10_000).map(|raw| campaign(CampaignId::from_raw(raw)));
    let count = |share| places().filter(|place| is_sampled(place.trace, share)).count();
    assert_eq!((count(0.0), count(1.0)), (0, 10_000));
    assert!((800..1_200).contains(&count(0.1)), "{}", count(0.1));
    assert!(places().eq(places()));
}

proptest! {
    #[test]
    fn no_header_makes_the_reader_panic(text in "[ -~]{0,80}") {
        let _ = parent(&[&text]);
    }
}
