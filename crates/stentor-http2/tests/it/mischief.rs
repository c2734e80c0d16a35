//! Every request gets one reply and none is processed twice, for any behaviour of the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use stentor_http2::{Limits, Reply};
use tokio::net::TcpListener;

use crate::frames::{Event, INTERNAL_ERROR, Peer, REFUSED_STREAM, listen};
use crate::support::{batch, client, quick, within};

#[derive(Debug, Clone, Copy)]
enum Act {
    Answer,
    Refuse,
    Break,
    GoAway,
    Allow(u32),
    Drop,
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => Just(Act::Answer),
        2 => Just(Act::Refuse),
        1 => Just(Act::Break),
        1 => Just(Act::GoAway),
        1 => (1..20_u32).prop_map(Act::Allow),
        1 => Just(Act::Drop),
    ]
}

/// State shared by the server's connections: the next acts, and the number of times each body was processed.
struct Script {
    acts: Vec<Act>,
    next: usize,
    processed: HashMap<String, usize>,
}

impl Script {
    fn act(&mut self) -> Act {
        self.next += 1;
        self.acts[(self.next - 1) % self.acts.len()]
    }
}

type Shared = Arc<Mutex<Script>>;

async fn misbehave(listener: TcpListener, script: Shared) {
    loop {
        let peer = Peer::accept(&listener, 10).await;
        tokio::spawn(serve(peer, Arc::clone(&script)));
    }
}

async fn serve(mut peer: Peer, script: Shared) {
    let mut last = u32::MAX;
    while let Some(event) = peer.next().await {
        let Event::Request { stream, body } = event else { continue };
        if stream > last {
            continue;
        }
        let act = script.lock().expect("sound").act();
        if !matches!(act, Act::Refuse) {
            *script.lock().expect("sound").processed.entry(body).or_default() += 1;
        }
        match act {
            Act::Answer => peer.answer(stream).await,
            Act::Refuse => peer.reset(stream, REFUSED_STREAM).await,
            Act::Break => peer.reset(stream, INTERNAL_ERROR).await,
            Act::Drop => return,
            Act::Allow(most) => {
                peer.allow(most).await;
                peer.answer(stream).await;
            }
            Act::GoAway => {
                last = stream;
                peer.go_away(stream).await;
                peer.answer(stream).await;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_request_gets_one_reply_and_none_is_processed_twice(
        acts in prop::collection::vec(any_act(), 1..30),
        count in 1..80_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let script = Arc::new(Mutex::new(Script { acts, next: 0, processed: HashMap::new() }));
        let shared = Arc::clone(&script);
        let replies = runtime.block_on(async move {
            let (listener, port) = listen().await;
            tokio::spawn(misbehave(listener, shared));
            let client = client(port, Limits { request_timeout_ms: 2_000, ..quick() });
            within(60, client.send(batch(count))).await
        });
        prop_assert_eq!(replies.len(), count);
        let script = script.lock().expect("sound");
        for (index, reply) in replies.iter().enumerate() {
            let processed = script.processed.get(&index.to_string()).copied().unwrap_or(0);
            prop_assert!(processed <= 1, "{} times", processed);
            match reply {
                Reply::Answered(_) => prop_assert_eq!(processed, 1),
                Reply::NotSent(_) => prop_assert_eq!(processed, 0),
                Reply::Unanswered(_) => {}
            }
        }
    }
}
