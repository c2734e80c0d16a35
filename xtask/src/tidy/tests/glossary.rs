//! The glossary.

use super::lines;
use crate::tidy::glossary::findings;

const PAGE: &str = "| word | meaning |\n| **App** | one (`app_…`) |\n| **Crew, app** | two |\n| **app** | again (`usr_…`) |\n";

#[test]
fn a_word_stands_once_and_is_one_of_the_code() {
    let is_known = |word: &str| ["App", "app", "\"app\""].contains(&word);
    assert_eq!(
        lines(&findings(PAGE, is_known)),
        [3, 3, 4, 4],
        "no crew, app twice and again, no number usr_"
    );
}
