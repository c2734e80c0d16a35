use super::{DevicePopulation, MAX_DEVICES, PopulationMember, StagedService, StagedServices, TokenOrigins};
use serde_json::{Value, json};
use std::collections::HashSet;
use stentor_emulators::web_push::SyntheticSubscriptions;

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
    let member = PopulationMember { service: StagedService::Apns, number: 3 };
    assert_ne!(DevicePopulation::new(10, 1).token(member), DevicePopulation::new(10, 2).token(member));
}

fn through(services: &[StagedService], devices: u64) -> DevicePopulation {
    DevicePopulation::new(devices, 5).through(StagedServices::new(services).unwrap())
}

#[test]
fn the_parts_of_the_push_services_make_the_whole() {
    let lists: [&[StagedService]; 4] = [
        &StagedService::USUAL,
        &[StagedService::Hms],
        &[StagedService::Gcm, StagedService::Apns, StagedService::Hms],
        &StagedService::ALL,
    ];
    for (services, devices) in lists.into_iter().flat_map(|list| [2, 3, 1001].map(|devices| (list, devices)))
    {
        let population = through(services, devices);
        let counted =
            |service| population.members().filter(|member| member.service == service).count() as u64;
        for service in StagedService::ALL {
            assert_eq!(counted(service), population.devices_of(service), "{services:?} {devices}");
        }
        let sum: u64 = services.iter().map(|service| population.devices_of(*service)).sum();
        assert_eq!(sum, devices, "{services:?}");
    }
}

#[test]
fn a_list_names_at_least_one_push_service_and_each_once() {
    assert_eq!(StagedServices::new(&[]), None);
    assert_eq!(StagedServices::new(&[StagedService::Hms, StagedService::Hms]), None);
    assert_eq!(StagedServices::new(&StagedService::USUAL), Some(StagedServices::USUAL));
}

#[test]
fn tokens_look_like_those_of_the_vendors() {
    let population = DevicePopulation::new(MAX_DEVICES, 1);
    let apns = population.token(PopulationMember { service: StagedService::Apns, number: 9 });
    assert!(apns.len() == 64 && apns.bytes().all(|byte| byte.is_ascii_hexdigit()), "{apns}");
    let fcm = population.token(PopulationMember { service: StagedService::Fcm, number: 9 });
    assert_eq!((fcm.len(), fcm.find(":APA91b")), (163, Some(22)), "{fcm}");
    let all = through(&StagedService::ALL, 100);
    let hms = all.token(PopulationMember { service: StagedService::Hms, number: 9 });
    assert_eq!((hms.len(), hms.find("IQAAAACy")), (130, Some(0)), "{hms}");
    let gcm = all.token(PopulationMember { service: StagedService::Gcm, number: 9 });
    assert_eq!((gcm.len(), gcm.find("APA91b")), (140, Some(0)), "{gcm}");
}

#[test]
fn a_listed_device_is_recognized_by_what_the_api_shows() {
    let population = DevicePopulation::new(MAX_DEVICES, 5);
    for number in [0, 1, 255, 256, 65_535, 1_000_003, MAX_DEVICES / 2 - 1] {
        for service in StagedService::USUAL {
            let member = PopulationMember { service, number };
            assert_eq!(population.recognize(&as_listed(population, member)), Some(member));
        }
    }
    let all = through(&StagedService::ALL, 600);
    assert!(all.members().all(|member| all.recognize(&as_listed(all, member)) == Some(member)));
}

#[test]
fn a_stranger_is_not_recognized() {
    let small = DevicePopulation::new(10, 5);
    let outside = PopulationMember { service: StagedService::Apns, number: 5 };
    assert_eq!(small.recognize(&as_listed(small, outside)), None);
    assert_eq!(small.recognize(&json!({"provider": "null"})), None);
}

fn as_listed(population: DevicePopulation, member: PopulationMember) -> Value {
    let web_push = SyntheticSubscriptions::new("https://localhost:8443", 5).ok();
    let origins = TokenOrigins { web_push, wns: "https://localhost:8444".to_owned() };
    let mut line = String::new();
    population.write_line_at(member, Some(&origins), &mut line);
    let mut device: Value = serde_json::from_str(&line).unwrap();
    let token = device["token"].as_str().unwrap().to_owned();
    device["token_hint"] = json!(format!("…{}", &token[token.len() - 4..]));
    device["provider"] = json!(member.service.word());
    device
}
