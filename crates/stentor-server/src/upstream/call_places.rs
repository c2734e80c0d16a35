//! Places for calls of all apps. Calls to slow receivers have places of their own, so that they take none from the others.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::handover::HandoverRefusal;

/// Duration from which a call counts as late.
const QUICK_MAX: Duration = Duration::from_secs(1);

/// Places for concurrent calls, of all apps.
pub(super) struct CallPlaces {
    quick: Semaphore,
    late: Semaphore,
}

/// The pace of one app's calls: prompt or late, judged by the last call.
#[derive(Debug, Default)]
pub(super) struct CallPace(AtomicBool);

impl CallPace {
    /// Returns true if the last call was late.
    pub(super) fn is_late(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl CallPlaces {
    /// Creates `count` places for prompt calls, and as many for late ones.
    pub(super) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { quick: Semaphore::new(count), late: Semaphore::new(count) })
    }

    /// Makes a call once a place is free. A call that becomes late gives up its place; it continues if a place for late calls is free.
    pub(super) async fn call(
        &self,
        pace: &CallPace,
        call: impl Future<Output = Result<(), HandoverRefusal>>,
    ) -> Result<(), HandoverRefusal> {
        let was_late = pace.is_late();
        let place = place_of(if was_late { &self.late } else { &self.quick }).await?;
        let mut call = std::pin::pin!(call);
        let in_time = timeout(QUICK_MAX, &mut call).await;
        pace.0.store(in_time.is_err(), Ordering::Relaxed);
        if let Ok(done) = in_time {
            return done;
        }
        if was_late {
            return call.await;
        }
        drop(place);
        let all_taken =
            |_| HandoverRefusal::new("it is slow, and as many slow calls run as are allowed at once");
        let _among_the_late = self.late.try_acquire().map_err(all_taken)?;
        call.await
    }
}

async fn place_of(places: &Semaphore) -> Result<SemaphorePermit<'_>, HandoverRefusal> {
    places.acquire().await.map_err(|_| HandoverRefusal::new("the server stops"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tarpit() -> Result<(), HandoverRefusal> {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_take_long_leave_the_places_of_the_others() {
        let places = CallPlaces::new(2);
        let began = tokio::time::Instant::now();
        let (one, two, pace) = (CallPace::default(), CallPace::default(), CallPace::default());
        let late = async { tokio::join!(places.call(&one, tarpit()), places.call(&two, tarpit())) };
        let prompt = async {
            tokio::task::yield_now().await;
            places.call(&pace, async { Ok(()) }).await.expect("called");
            began.elapsed()
        };
        let (ends, waited) = tokio::join!(late, prompt);
        assert_eq!(ends, (Ok(()), Ok(())), "they go on");
        assert!(waited < 2 * QUICK_MAX, "{waited:?}");
        assert!(one.is_late() && two.is_late() && !pace.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_late_has_its_next_call_among_its_like_until_one_ends_in_time() {
        let places = CallPlaces::new(1);
        let (late, pace) = (CallPace::default(), CallPace::default());
        places.call(&late, tarpit()).await.expect("called");
        let held = places.late.acquire().await.expect("a place");
        let waits = places.call(&late, async { Ok(()) });
        tokio::pin!(waits);
        assert!(timeout(Duration::from_secs(5), &mut waits).await.is_err(), "no place among the late");
        places.call(&pace, async { Ok(()) }).await.expect("another has its own");
        drop(held);
        waits.await.expect("called");
        assert!(!late.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_finds_no_place_among_the_late_is_broken_off() {
        let places = CallPlaces::new(1);
        let _held = places.late.acquire().await.expect("a place");
        let refused = places.call(&CallPace::default(), tarpit()).await.expect_err("broken off");
        assert!(refused.reason.contains("it is slow"), "{refused:?}");
    }
}
