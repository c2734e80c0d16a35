//! Depths of the lanes.

use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::ports::queue::{LaneDepth, Queue};

use super::{bulk, lane, publish, take, ticket};
use crate::conformance::scene::at;

pub async fn depths_count_ready_delayed_and_leased(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0), ticket(2, 3), ticket(3, 4), ticket(4, 50), ticket(5, 40)]).await;
    take(queue, 1, 5).await;
    let depths = queue.depths(at(5)).await.expect("told");
    let expected = LaneDepth {
        lane: bulk(),
        ready: 2,
        delayed: 2,
        leased: 1,
        oldest_due: Some(at(3)),
        next_due: Some(at(40)),
    };
    assert_eq!(depths, [expected]);
}

pub async fn each_lane_that_holds_anything_is_listed(queue: &dyn Queue) {
    let urgent = Ticket { lane: lane(1, TrafficClass::Urgent), ..ticket(1, 0) };
    let other = Ticket { lane: lane(2, TrafficClass::Bulk), ..ticket(2, 9) };
    publish(queue, &[urgent, other, ticket(3, 0)]).await;
    let mut depths = queue.depths(at(0)).await.expect("told");
    depths.sort_by_key(|depth| depth.lane);
    let counts: Vec<_> = depths.iter().map(|depth| (depth.lane, depth.ready, depth.delayed)).collect();
    assert_eq!(counts, [(urgent.lane, 1, 0), (bulk(), 1, 0), (other.lane, 0, 1)]);
    queue.ack(take(queue, 1, 0).await).await.expect("acked");
    let depths = queue.depths(at(0)).await.expect("told");
    assert!(depths.iter().all(|depth| depth.lane != bulk()), "an empty lane is not told");
}

pub async fn a_lease_that_ran_out_counts_as_ready(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0)]).await;
    take(queue, 1, 0).await;
    let depths = queue.depths(at(61)).await.expect("told");
    assert_eq!((depths[0].ready, depths[0].leased, depths[0].oldest_due), (1, 0, Some(at(0))));
}

pub async fn a_queue_that_takes_tickets_says_so_and_shows_nothing_of_the_trial(queue: &dyn Queue) {
    queue.keeps().await.expect("it takes them");
    assert_eq!(queue.depths(at(0)).await.expect("told"), []);
    publish(queue, &[ticket(1, 0)]).await;
    queue.keeps().await.expect("it takes them");
    queue.ack(take(queue, 1, 0).await).await.expect("acked");
    assert_eq!(queue.depths(at(0)).await.expect("told"), []);
}
