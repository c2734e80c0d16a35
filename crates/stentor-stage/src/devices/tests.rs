use super::{DevicePopulation, Half, MAX_DEVICES, PopulationMember};
use serde_json::{Value, json};
use std::collections::HashSet;

#[test]
fn tokens_are_different_and_repeatable() {
    let population = DevicePopulation::new(20_000, 7);
    let tokens: HashSet<String> = population.members().map(|member| population.token(member)).collect();
    assert_eq!(tokens.len(), 20_000);
    assert!(
        population.members().all(|member| tokens.contains(&DevicePopulation::new(20_000, 7).token(member)))
    );
}

#[test]
fn another_seed_gives_other_tokens() {
    let member = PopulationMember { half: Half::Apns, number: 3 };
    assert_ne!(DevicePopulation::new(10, 1).token(member), DevicePopulation::new(10, 2).token(member));
}

#[test]
fn the_halves_make_the_whole() {
    for devices in [2, 3, 1001] {
        let population = DevicePopulation::new(devices, 1);
        assert_eq!(population.devices_of(Half::Fcm) + population.devices_of(Half::Apns), devices);
        let apns = population.members().filter(|member| member.half == Half::Apns).count() as u64;
        assert_eq!(apns, population.devices_of(Half::Apns));
    }
}

#[test]
fn tokens_look_like_those_of_the_vendors() {
    let population = DevicePopulation::new(MAX_DEVICES, 1);
    let apns = population.token(PopulationMember { half: Half::Apns, number: 9 });
    assert!(apns.len() == 64 && apns.bytes().all(|byte| byte.is_ascii_hexdigit()), "{apns}");
    let fcm = population.token(PopulationMember { half: Half::Fcm, number: 9 });
    assert_eq!((fcm.len(), fcm.find(":APA91b")), (163, Some(22)), "{fcm}");
}

#[test]
fn a_listed_device_is_recognized_by_what_the_api_shows() {
    let population = DevicePopulation::new(MAX_DEVICES, 5);
    for number in [0, 1, 255, 256, 65_535, 1_000_003, MAX_DEVICES / 2 - 1] {
        for half in Half::BOTH {
            let member = PopulationMember { half, number };
            assert_eq!(population.recognize(&as_listed(population, member)), Some(member));
        }
    }
}

#[test]
fn a_stranger_is_not_recognized() {
    let small = DevicePopulation::new(10, 5);
    let outside = PopulationMember { half: Half::Apns, number: 5 };
    assert_eq!(small.recognize(&as_listed(small, outside)), None);
    assert_eq!(small.recognize(&json!({"provider": "null"})), None);
}

fn as_listed(population: DevicePopulation, member: PopulationMember) -> Value {
    let mut line = String::new();
    population.write_line(member, &mut line);
    let mut device: Value = serde_json::from_str(&line).unwrap();
    let token = device["token"].as_str().unwrap().to_owned();
    device["token_hint"] = json!(format!("…{}", &token[token.len() - 4..]));
    device["provider"] = json!(member.half.word());
    device
}
