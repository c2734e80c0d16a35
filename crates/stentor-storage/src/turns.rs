//! Turns between apps, where more is due than can be done at once.

/// Takes one element of each list in turn, up to `max` in all.
pub(crate) fn in_turns<T>(lists: Vec<Vec<T>>, max: usize) -> Vec<T> {
    let mut taken = Vec::new();
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    while taken.len() < max && !lists.is_empty() {
        let left = max - taken.len();
        let mut round: Vec<_> = lists.iter_mut().take(left).filter_map(Iterator::next).collect();
        lists.retain(|list| list.len() > 0);
        taken.append(&mut round);
    }
    taken
}

/// Returns the share of each of `of` participants in `max`; at least one.
pub(crate) const fn share(max: usize, of: usize) -> usize {
    let share = max.div_ceil(if of == 0 { 1 } else { of });
    if share == 0 { 1 } else { share }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_its_turn_until_enough_are_taken() {
        let lists = || vec![vec![1, 2, 3, 4], vec![11], vec![21, 22]];
        assert_eq!(in_turns(lists(), 5), [1, 11, 21, 2, 22]);
        assert_eq!(in_turns(lists(), 2), [1, 11]);
        assert_eq!(in_turns(lists(), 100), [1, 11, 21, 2, 22, 3, 4]);
        assert!(in_turns(Vec::<Vec<u8>>::new(), 3).is_empty());
    }
}
