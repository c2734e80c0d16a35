use std::sync::atomic::AtomicBool;

use super::*;

#[test]
fn connections_are_put_in_order_though_their_loads_change_meanwhile() {
    let members: Vec<Arc<PooledConnection>> =
        (0..100).map(|_| Arc::new(PooledConnection::default())).collect();
    members.iter().for_each(|member| member.room.store(1, Relaxed));
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut load = 1_usize;
            while !finished.load(Relaxed) {
                for member in &members {
                    load = load.wrapping_mul(25_214_903_917).wrapping_add(11);
                    member.open.store(load >> 16 & 0xff, Relaxed);
                }
            }
        });
        let listed: Vec<usize> = (0..5_000).map(|_| ready(&members).len()).collect();
        finished.store(true, Relaxed);
        assert!(listed.iter().all(|count| *count == 100));
    });
}

#[test]
fn the_least_loaded_connection_with_room_comes_first() {
    let members: Vec<Arc<PooledConnection>> = (0..3).map(|_| Arc::new(PooledConnection::default())).collect();
    for (member, (room, open)) in members.iter().zip([(5, 9), (0, 0), (5, 2)]) {
        member.room.store(room, Relaxed);
        member.open.store(open, Relaxed);
    }
    let loads: Vec<usize> = ready(&members).iter().map(|member| member.open.load(Relaxed)).collect();
    assert_eq!(loads, [2, 9]);
}
