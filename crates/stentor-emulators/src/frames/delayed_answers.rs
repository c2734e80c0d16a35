//! Delayed responses: the remains of their requests, packed densely in the order in which they were delayed.
//!
//! A busy connection delays a thousand responses for many milliseconds, and as open streams they would far exceed a processor's cache.
//! Responses that arrive in order are therefore stored in order, and read back in order.

use super::answer::EncodedAnswer;
use std::collections::VecDeque;
use tokio::time::Instant;

/// The size of a page of responses, unless a single response is longer.
const PAGE_BYTES: usize = 16 * 1024;

/// One answer that waits.
pub(super) struct DelayedAnswer<W> {
    pub(super) id: u32,
    /// The number of bytes by which the peer has widened the stream's window beyond the initial one.
    pub(super) widened: u32,
    pub(super) span: Span,
    pub(super) hosts: W,
    /// `None` for one that waits to be released.
    pub(super) due: Option<Instant>,
}

/// All answers of a connection that wait.
pub(super) struct DelayedAnswers<W> {
    /// By the time they are due; those of one length of wait simply follow each other.
    timed: VecDeque<DelayedAnswer<W>>,
    unreleased: VecDeque<DelayedAnswer<W>>,
}

impl<W> DelayedAnswers<W> {
    pub(super) fn new() -> Self {
        Self { timed: VecDeque::new(), unreleased: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.timed.len() + self.unreleased.len()
    }

    pub(super) fn push(&mut self, waiting: DelayedAnswer<W>) {
        let Some(due) = waiting.due else { return self.unreleased.push_back(waiting) };
        // Equal waits, which are the rule, come in their order by themselves.
        if self.timed.back().is_none_or(|last| last.due <= Some(due)) {
            return self.timed.push_back(waiting);
        }
        let later = self.timed.partition_point(|other| other.due <= Some(due));
        self.timed.insert(later, waiting);
    }

    /// Returns when the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timed.front()?.due
    }

    pub(super) fn pop_due(&mut self, now: Instant) -> Option<DelayedAnswer<W>> {
        self.timed.pop_front_if(|waiting| waiting.due <= Some(now))
    }

    pub(super) fn pop_unreleased(&mut self) -> Option<DelayedAnswer<W>> {
        self.unreleased.pop_front()
    }

    /// Removes the response of a reset stream, which is mostly one of the latest.
    pub(super) fn take(&mut self, id: u32) -> Option<DelayedAnswer<W>> {
        [&mut self.timed, &mut self.unreleased].into_iter().find_map(|answers| {
            let place = answers.iter().rposition(|waiting| waiting.id == id)?;
            answers.remove(place)
        })
    }

    pub(super) fn find(&mut self, id: u32) -> Option<&mut DelayedAnswer<W>> {
        self.timed.iter_mut().rev().chain(&mut self.unreleased).find(|waiting| waiting.id == id)
    }

    /// Returns the widest extension of a window, in bytes.
    pub(super) fn widest(&self) -> u32 {
        self.timed.iter().chain(&self.unreleased).map(|waiting| waiting.widened).max().unwrap_or(0)
    }
}

/// The position of a response in the arena.
pub(super) struct Span {
    page: u32,
    start: u32,
    block_bytes: u32,
    body_bytes: u32,
}

/// The bytes of the answers that wait. A page is used again when its last answer has left.
#[derive(Default)]
pub(super) struct AnswerArena {
    pages: Vec<ArenaPage>,
    current: usize,
    empty: Vec<usize>,
}

struct ArenaPage {
    bytes: Vec<u8>,
    answers: u32,
}

impl AnswerArena {
    pub(super) fn put(&mut self, answer: &EncodedAnswer) -> Span {
        let (block, body) = (&answer.block, &answer.body);
        self.make_room(block.len() + body.len());
        let page = &mut self.pages[self.current];
        let start = page.bytes.len() as u32;
        page.bytes.extend_from_slice(block);
        page.bytes.extend_from_slice(body);
        page.answers += 1;
        let (block_bytes, body_bytes) = (block.len() as u32, body.len() as u32);
        Span { page: self.current as u32, start, block_bytes, body_bytes }
    }

    /// Returns the header block and the body of an answer.
    pub(super) fn read(&self, span: &Span) -> (&[u8], &[u8]) {
        let bytes = &self.pages[span.page as usize].bytes[span.start as usize..];
        let (block, rest) = bytes.split_at(span.block_bytes as usize);
        (block, &rest[..span.body_bytes as usize])
    }

    pub(super) fn clear(&mut self, span: &Span) {
        let number = span.page as usize;
        let page = &mut self.pages[number];
        page.answers -= 1;
        if page.answers == 0 {
            page.bytes.clear();
            // The current page is still being filled, so it is not reused.
            if number != self.current {
                self.empty.push(number);
            }
        }
    }

    fn make_room(&mut self, bytes: usize) {
        // An answer that is longer than a page has one for itself.
        let fits = |page: &ArenaPage| page.bytes.is_empty() || page.bytes.len() + bytes <= PAGE_BYTES;
        if self.pages.get(self.current).is_some_and(fits) {
            return;
        }
        self.current = self.empty.pop().unwrap_or_else(|| {
            self.pages.push(ArenaPage { bytes: Vec::with_capacity(PAGE_BYTES), answers: 0 });
            self.pages.len() - 1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> EncodedAnswer {
        EncodedAnswer { block: text.as_bytes().to_vec(), body: text.as_bytes().repeat(2) }
    }

    #[test]
    fn what_comes_and_leaves_in_order_needs_no_more_pages_however_long_that_goes_on() {
        let (mut arena, mut there) = (AnswerArena::default(), VecDeque::new());
        for number in 0..100_000 {
            there.push_back(arena.put(&answer("an answer")));
            if number >= 1_000 {
                arena.clear(&there.pop_front().expect("a thousand"));
            }
        }
        let needed = (1_000 * 3 * "an answer".len()).div_ceil(PAGE_BYTES);
        assert!(arena.pages.len() <= needed + 2, "{} of {needed}", arena.pages.len());
    }

    proptest::proptest! {
        #[test]
        fn every_answer_is_found_as_it_was_put_whatever_left_before(steps in proptest::collection::vec((0_usize..5000, 0_usize..6), 1..200)) {
            let mut arena = AnswerArena::default();
            let mut there: Vec<(EncodedAnswer, Span)> = Vec::new();
            for (number, (length, leaves)) in steps.into_iter().enumerate() {
                let new = answer(&char::from(b'a' + (number % 26) as u8).to_string().repeat(length));
                let span = arena.put(&new);
                there.push((new, span));
                for _ in 0..leaves.min(there.len()) {
                    let (old, span) = there.swap_remove(number % there.len());
                    proptest::prop_assert_eq!(arena.read(&span), (&old.block[..], &old.body[..]));
                    arena.clear(&span);
                }
                if there.is_empty() {
                    proptest::prop_assert!(arena.pages.iter().all(|page| page.bytes.is_empty()));
                }
            }
            for (old, span) in there {
                proptest::prop_assert_eq!(arena.read(&span), (&old.block[..], &old.body[..]));
            }
        }
    }
}
