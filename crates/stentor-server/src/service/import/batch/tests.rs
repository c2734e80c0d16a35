use stentor_core::device::{Platform, ProviderKind, PushToken};
use stentor_core::name::TopicName;

use super::*;

const LINES: usize = 16_384;

fn line(no: usize, topics: usize, token_bytes: usize) -> Registration {
    let token = format!("{no:0>token_bytes$}");
    let topic = |no: usize| TopicName::new(format!("topic-{no}")).expect("a topic");
    Registration {
        topics: (0..topics).map(topic).collect(),
        ..Registration::new(Platform::Android, ProviderKind::Fcm, PushToken::new(token).expect("a token"))
    }
}

/// Cuts `count` equal lines as an import does. Returns the number of lines of each batch, and the largest weights.
fn cut(count: usize, topics: usize, token_bytes: usize) -> (Vec<usize>, Weight) {
    let (mut gathered, mut sizes, mut most) = (Parsed::default(), Vec::new(), Weight::default());
    let mut take = |batch: Parsed| {
        let weight = batch.registrations.iter().map(Weight::of).fold(Weight::default(), |mut sum, one| {
            sum.add(one);
            sum
        });
        assert_eq!((batch.weight, batch.lines.len()), (weight, batch.registrations.len()));
        most = Weight { bytes: most.bytes.max(weight.bytes), rows: most.rows.max(weight.rows) };
        sizes.push(batch.registrations.len());
    };
    let mut block = Parsed::default();
    for no in 0..count {
        block.push(no as u64, line(no, topics, token_bytes));
        if no % 40 == 39 || no == count - 1 {
            gathered.append(std::mem::take(&mut block));
            std::iter::from_fn(|| gathered.cut(LINES)).for_each(&mut take);
        }
    }
    take(gathered);
    (sizes, most)
}

#[test]
fn plain_lines_go_in_batches_as_large_as_the_setting_allows() {
    let (sizes, most) = cut(2 * LINES + 5, 0, 163);
    assert_eq!(sizes, [LINES, LINES, 5]);
    assert!(most.bytes < BATCH_MAX_BYTES && most.rows == 0);
}

#[test]
fn lines_with_many_topics_make_batches_of_a_bounded_number_of_rows() {
    let (sizes, most) = cut(200, 2_000, 8);
    assert_eq!(sizes.iter().sum::<usize>(), 200);
    assert!(most.rows <= BATCH_MAX_ROWS && sizes.len() >= 100, "{sizes:?}");
}

#[test]
fn long_tokens_make_batches_of_a_bounded_number_of_bytes() {
    let (sizes, most) = cut(6_000, 0, 4_096);
    assert_eq!(sizes.iter().sum::<usize>(), 6_000);
    assert!(most.bytes <= BATCH_MAX_BYTES && sizes.len() >= 3, "{sizes:?}");
}

#[test]
fn bad_lines_alone_fill_a_batch_too() {
    let mut gathered = Parsed::default();
    let problem = crate::service::Problem::field("token", "bad");
    gathered.problems =
        (0..ERRORS_MAX_COUNT as u64).map(|no| ImportProblem::new(no, problem.clone())).collect();
    assert_eq!(gathered.cut(LINES).map(|batch| batch.problems.len()), Some(ERRORS_MAX_COUNT));
    assert_eq!(gathered.line_count(), 0);
}
