//! Verdicts in which chance has little part or none.

use super::*;
use crate::record::tests::kept;
use crate::results::verdicts::ERROR_SHARE;

/// Forks of all subjects with 1884 points of interest, of which none runs out of memory.
fn finished(forks: u32) -> Results {
    let subjects = ["HTTP XML DOM", "HTTP XML Pull", "HTTP JSON", "SOCKET", "HTTP XML SAX", "HTTP PROBUF"];
    let fork = |subject: &str, fork: u32| {
        let mut one = record(subject, "Int", "200", fork, 5.0, &mut Invented::new(u64::from(fork)));
        "anacleto-2012".clone_into(&mut one.study);
        "poi sync".clone_into(&mut one.experiment);
        one.cell =
            [("poi", "1884"), ("heap", "16 MB")].map(|(name, level)| (name.into(), level.into())).into();
        one
    };
    of(subjects.iter().flat_map(|subject| (1..=forks).map(|one| fork(subject, one))).collect())
}

#[test]
fn outcomes_of_three_forks_are_no_surer_than_an_eighth() {
    let three = finding(&finished(3), "C001-4").period;
    assert_eq!((three.verdict, three.p.is_none_or(|p| p >= 0.125)), (Undecided, true), "{three:?}");
    assert_eq!(three.judgment.expect("judged").p_min(), 0.125);
    let twelve = finding(&finished(12), "C001-4").period;
    assert_eq!(twelve.verdict, DoesNotHold, "{twelve:?}");
    assert!(twelve.p.is_some_and(|p| (0.5_f64.powi(12)..=ERROR_SHARE).contains(&p)), "{twelve:?}");
}

#[test]
fn bytes_that_are_the_same_in_every_fork_have_no_p() {
    let received = finding(&finished(3), "C001-5").period;
    assert_eq!((received.verdict, received.p), (NotTestable, None), "the other sizes are missing");
    let Some(records) = kept("anacleto-2012") else { return };
    let share = finding(&of(records), "C001-7b").period;
    assert!(share.is_deterministic && share.p.is_none() && share.verdict.is_decided(), "{share:?}");
}

#[test]
fn gcm_and_fcm_are_not_compared_with_each_other() {
    let Some(records) = kept("albertengo-2020") else { return };
    let results = of(records);
    for id in ["C000-1", "C000-2", "C000-4", "C000-5", "C000-7", "C000-10", "C000-11"] {
        let found = finding(&results, id);
        for (setting, finding) in found.at_each_setting(false) {
            assert_eq!((finding.verdict, finding.p), (SetByExperiment, None), "{id} at {setting}");
        }
    }
}
