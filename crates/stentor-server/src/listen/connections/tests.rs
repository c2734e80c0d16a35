use super::*;

const FIRST: Duration = Duration::from_secs(10);
const LATER: Duration = Duration::from_secs(60);

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn v4(number: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, number])
}

/// Opens `count` connections of one address, each with an unanswered request.
fn busy(connections: &Arc<Connections>, from: IpAddr, count: usize) -> Vec<(Place, AtWork)> {
    let one = || {
        let place = connections.admit(from).expect("there is room");
        let at_work = place.begin();
        (place, at_work)
    };
    (0..count).map(|_| one()).collect()
}

#[test]
fn one_address_gets_its_part_and_others_get_in() {
    let connections = Connections::new(10, 4);
    let held = busy(&connections, v4(1), 4);
    assert!(connections.admit(v4(1)).is_none(), "all of its connections are at work");
    let other = connections.admit(v4(2));
    assert!(other.is_some());
    assert_eq!((connections.counts().open, connections.counts().refused), (5, 1));
    drop((held, other));
    assert_eq!(connections.counts().open, 0);
    assert!(connections.open().by_origin.is_empty(), "addresses without connections are forgotten");
}

#[test]
fn addresses_of_one_ipv6_network_and_both_writings_of_an_ipv4_address_are_one() {
    let connections = Connections::new(10, 1);
    let _held = (
        busy(&connections, address("2001:db8:0:1::1"), 1),
        busy(&connections, address("192.0.2.1"), 1),
        busy(&connections, address("2001:db8:0:2::1"), 1),
    );
    assert!(connections.admit(address("2001:db8:0:1:ffff::2")).is_none());
    assert!(connections.admit(address("::ffff:192.0.2.1")).is_none());
}

#[tokio::test(start_paused = true)]
async fn idle_connections_make_room_the_longest_idle_of_the_greediest_address_first() {
    let connections = Connections::new(4, 4);
    let lonely = connections.admit(v4(1)).expect("room");
    let mut greedy = Vec::new();
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(1)).await;
        greedy.push(connections.admit(v4(2)).expect("room"));
    }
    drop(greedy[0].begin());
    let newcomer = connections.admit(v4(3)).expect("an idle one makes room");
    let replaced = |place: &Place| place.activity.replaced.is_cancelled();
    assert_eq!(greedy.iter().map(replaced).collect::<Vec<_>>(), [false, true, false]);
    assert!(!replaced(&lonely) && !replaced(&newcomer));
    greedy.remove(1).replaced().await;
    assert_eq!((connections.counts().open, connections.counts().replaced), (4, 1));
}

#[test]
fn idle_connections_are_closed_when_the_machine_lacks_something_and_no_others() {
    let connections = Connections::new(10, 10);
    let _held = busy(&connections, v4(1), 2);
    let idle = connections.admit(v4(2)).expect("room");
    connections.relieve();
    connections.relieve();
    assert!(idle.activity.replaced.is_cancelled());
    assert_eq!((connections.counts().open, connections.counts().replaced), (2, 1));
}

#[tokio::test]
async fn where_all_are_at_work_new_ones_wait_until_one_ends_or_rests() {
    for ends in [true, false] {
        let connections = Connections::new(2, 2);
        let mut held = busy(&connections, v4(1), 2);
        let mut room = Box::pin(connections.room());
        assert!(futures_util::poll!(&mut room).is_pending());
        let (place, at_work) = held.pop().expect("held");
        drop(at_work);
        let resting = if ends { None } else { Some(place) };
        room.await;
        drop(resting);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_idle_after_its_first_wait_and_after_its_last_answer() {
    let connections = Connections::new(2, 2);
    let place = connections.admit(v4(1)).expect("room");
    let began = Instant::now();
    place.idle(FIRST, LATER).await;
    assert_eq!(began.elapsed().as_secs(), 10, "nothing was asked");
    let at_work = place.begin();
    let ended = async {
        sleep(Duration::from_secs(100)).await;
        drop(at_work);
    };
    let began = Instant::now();
    tokio::join!(place.idle(FIRST, LATER), ended);
    assert_eq!(began.elapsed().as_secs(), 160, "a minute after the answer");
    assert_eq!(connections.counts().idle_closed, 2);
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_may_be_taken_slowly() {
    let connections = Connections::new(1, 1);
    let place = connections.admit(v4(1)).expect("room");
    place.begin().answered(10 * 60 * ANSWER_MIN_BYTES_PER_SECOND);
    let began = Instant::now();
    place.idle(FIRST, LATER).await;
    assert_eq!(began.elapsed().as_secs(), 11 * 60);
}
