//! Holding, prolonging and settling leases.

use stentor_core::ports::queue::{Queue, QueueLease};

use super::{MINUTE, numbers, publish, take, ticket};
use crate::conformance::scene::at;

pub async fn a_leased_ticket_is_nobody_elses(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0), ticket(2, 0)]).await;
    assert_eq!(numbers(&take(queue, 1, 0).await), [1]);
    assert_eq!(numbers(&take(queue, 10, 59).await), [2]);
    assert!(take(queue, 10, 59).await.is_empty());
}

pub async fn a_lease_that_ran_out_is_given_to_another(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0)]).await;
    let lost = take(queue, 1, 0).await;
    let found = take(queue, 1, 60).await;
    assert_eq!(numbers(&found), [1]);
    assert_eq!(found[0].ticket, lost[0].ticket, "with the due time it had");
    assert_ne!(found[0].token, lost[0].token);
}

pub async fn an_acked_ticket_is_gone_for_good(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0), ticket(2, 0)]).await;
    let leases = take(queue, 1, 0).await;
    queue.ack(leases).await.expect("acked");
    assert_eq!(numbers(&take(queue, 10, 1_000).await), [2]);
}

pub async fn a_nacked_ticket_comes_back_when_it_is_due(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0)]).await;
    let leases = take(queue, 1, 0).await;
    queue.nack(leases, at(30)).await.expect("given back");
    assert!(take(queue, 1, 29).await.is_empty());
    let again = take(queue, 1, 30).await;
    assert_eq!(again[0].ticket, ticket(1, 30));
}

pub async fn a_nacked_ticket_stands_behind_what_is_due_before(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0), ticket(2, 5)]).await;
    let leases = take(queue, 1, 0).await;
    queue.nack(leases, at(6)).await.expect("given back");
    assert_eq!(numbers(&take(queue, 10, 10).await), [2, 1]);
}

pub async fn a_lease_lost_meanwhile_settles_nothing(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0)]).await;
    let first = take(queue, 1, 0).await;
    let second = take(queue, 1, 60).await;
    queue.ack(first).await.expect("ignored");
    let third = take(queue, 1, 120).await;
    assert_eq!(numbers(&third), [1], "still there");
    queue.nack(second, at(0)).await.expect("ignored");
    assert!(take(queue, 1, 121).await.is_empty(), "the third still holds it");
    queue.ack(third).await.expect("acked");
    assert!(take(queue, 1, 1_000).await.is_empty());
}

pub async fn a_prolonged_lease_holds_on(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0), ticket(2, 0)]).await;
    let leases = take(queue, 1, 0).await;
    assert_eq!(queue.extend(&leases, MINUTE, at(50)).await, Ok(vec![true]));
    assert_eq!(numbers(&take(queue, 10, 70).await), [2]);
    assert_eq!(numbers(&take(queue, 10, 110).await), [1]);
}

pub async fn a_lost_lease_cannot_be_prolonged(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0), ticket(2, 0)]).await;
    let lost = take(queue, 1, 0).await;
    let held = take(queue, 1, 30).await;
    let taken = take(queue, 1, 60).await;
    assert_eq!((numbers(&lost), numbers(&held), numbers(&taken)), (vec![1], vec![2], vec![1]));
    let leases: Vec<QueueLease> = lost.into_iter().chain(held).collect();
    assert_eq!(queue.extend(&leases, MINUTE, at(61)).await, Ok(vec![false, true]));
    assert!(take(queue, 1, 119).await.is_empty(), "the second is held until 121 s, the first until 120 s");
}

pub async fn an_acked_lease_cannot_be_prolonged(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0)]).await;
    let lease = take(queue, 1, 0).await.remove(0);
    let copy = QueueLease { ticket: lease.ticket, token: lease.token };
    queue.ack(vec![lease]).await.expect("acked");
    assert_eq!(queue.extend(&[copy], MINUTE, at(1)).await, Ok(vec![false]));
}
