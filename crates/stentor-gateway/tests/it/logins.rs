//! A device logs in with its token and the secret of it.

use futures_util::future::{join, join_all};
use secrecy::ExposeSecret;
use stentor_core::id::AppId;
use stentor_gateway::{Closed, DeviceCredentials, LoginError};
use stentor_storage::conformance::PlainChanges;

use crate::room::{Room, given, to};

#[tokio::test]
async fn only_the_secret_of_its_token_lets_a_device_in() {
    let room = Room::new().await;
    let (identity, credentials) = room.device().await;
    let token = credentials.token.expose();
    let login = room.gateway.login(token, credentials.secret.expose_secret()).await;
    assert_eq!(login, Ok(identity));
    let stranger = room.gateway.key().issue(room.app);
    let refused = [
        (token, "wrong"),
        (token, stranger.secret.expose_secret()),
        (stranger.token.expose(), stranger.secret.expose_secret()),
        ("", ""),
    ];
    for (token, secret) in refused {
        assert_eq!(room.gateway.login(token, secret).await, Err(LoginError::Refused));
    }
    room.store.remove_device(room.app, identity.device).await.expect("removed");
    let login = room.gateway.login(token, credentials.secret.expose_secret()).await;
    assert_eq!(login, Err(LoginError::Refused), "a lost device is cut off");
}

#[tokio::test]
async fn of_devices_that_log_in_together_one_whose_app_is_gone_keeps_no_other_out() {
    let room = Room::new().await;
    let gone = room.gateway.key().issue(AppId::from_raw(99));
    let mut devices = Vec::new();
    for _ in 0..8 {
        devices.push(room.device().await);
    }
    let login = async |credentials: &DeviceCredentials| {
        room.gateway.login(credentials.token.expose(), credentials.secret.expose_secret()).await
    };
    let (refused, found) =
        join(login(&gone), join_all(devices.iter().map(|(_, credentials)| login(credentials)))).await;
    assert!(refused.is_err());
    let own: Vec<_> = devices.iter().map(|(identity, _)| Ok(*identity)).collect();
    assert_eq!(found, own);
}

#[tokio::test]
async fn a_device_that_is_cut_off_learns_it_at_once() {
    let room = Room::new().await;
    let (identity, _) = room.device().await;
    let session = room.open(identity, 10);
    room.gateway.cut_off(identity.device);
    assert_eq!(session.next().await.expect_err("over"), Closed::CutOff);
}

#[tokio::test]
async fn a_device_with_a_new_token_is_in_with_that_alone_and_misses_nothing() {
    let room = Room::new().await;
    let (identity, old) = room.device().await;
    let message = room.send(to(&[identity.device])).await;
    let new = room.gateway.rotate(identity).await.expect("rotated");
    let login = room.gateway.login(new.token.expose(), new.secret.expose_secret()).await;
    assert_eq!(login, Ok(identity));
    let login = room.gateway.login(old.token.expose(), old.secret.expose_secret()).await;
    assert_eq!(login, Err(LoginError::Refused));
    let login = room.gateway.login(new.token.expose(), new.secret.expose_secret()).await;
    assert_eq!(login, Ok(identity), "again");
    assert_eq!(given(&room.open(identity, 10)).await, [message]);
    let replaced = room.store.replaced_tokens(room.app, &[old.token.expose().to_owned()]).await;
    assert_eq!(replaced, Ok(vec![Some(identity.device)]), "the old token leads to the device");
}

#[tokio::test]
async fn a_device_that_lost_its_new_token_is_in_with_the_former_one() {
    let room = Room::new().await;
    let (identity, old) = room.device().await;
    let lost = room.gateway.rotate(identity).await.expect("rotated");
    let session = room.open(identity, 10);
    let login = room.gateway.login(old.token.expose(), old.secret.expose_secret()).await;
    assert_eq!(login, Ok(identity));
    let new = room.gateway.rotate(identity).await.expect("rotated again");
    let login = room.gateway.login(lost.token.expose(), lost.secret.expose_secret()).await;
    assert_eq!(login, Err(LoginError::Refused), "only the latest counts");
    let login = room.gateway.login(new.token.expose(), new.secret.expose_secret()).await;
    assert_eq!(login, Ok(identity));
    assert_eq!(session.next().await.expect_err("over"), Closed::CutOff, "who came in before is out");
}
