use std::time::Duration;
use stentor_core::ports::store::UpstreamFilter;

use stentor_gateway::client::{McsClientEvent, McsUpstream};
use stentor_storage::conformance::scene::{at, first};

use super::program::{Program, event};
use crate::room::Room;

fn upstream(room: &Room, id: &str) -> McsUpstream {
    McsUpstream {
        id: id.to_owned(),
        to: format!("{}@gcm.googleapis.com", room.app.raw()),
        category: "one".to_owned(),
        data: vec![("a".to_owned(), "b".to_owned())],
        ttl: Duration::from_secs(60),
    }
}

#[tokio::test]
async fn a_message_of_a_device_is_on_disk_when_it_is_acknowledged_and_a_repeat_is_none() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    let token = program.register(room.app, "one").await;
    let mut client = program.connect().await;
    for _ in 0..2 {
        client.send(upstream(&room, "m-1")).await.expect("sent");
        assert_eq!(event(&mut client).await, McsClientEvent::Kept(vec!["m-1".to_owned()]));
    }
    let waiting =
        room.store.upstream(room.app, UpstreamFilter::Waiting, first(10), at(11)).await.expect("listed");
    assert_eq!((waiting.len(), waiting[0].body.as_str()), (1, r#"{"a":"b"}"#));
    assert_eq!(waiting[0].device, program.device(&token).await.device);
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_by_name_and_the_connection_lives() {
    let room = Room::new().await;
    let program = Program::check_in(&room.gateway);
    program.register(room.app, "one").await;
    let mut client = program.connect().await;
    let large = vec![("a".to_owned(), "b".repeat(5_000))];
    let rows = [
        (McsUpstream { data: large, ..upstream(&room, "m-2") }, "invalid_parameters"),
        (McsUpstream { to: "12345".to_owned(), ..upstream(&room, "m-3") }, "unknown_sender"),
    ];
    for (message, error) in rows {
        let id = message.id.clone();
        client.send(message).await.expect("sent");
        let (error, mut events) = (error.to_owned(), [event(&mut client).await, event(&mut client).await]);
        events.sort_by_key(|event| matches!(event, McsClientEvent::Kept(_)));
        assert_eq!(events[0], McsClientEvent::Refused { id: id.clone(), error });
        assert_eq!(events[1], McsClientEvent::Kept(vec![id]), "it need not be sent again");
    }
}
