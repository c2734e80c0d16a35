//! A page of a list: it ends at its limit or at the size limit of a reply. Rows are read in steps, so that only as many are in memory as
//! fit.

use serde::Serialize;

use crate::contract::{REPLY_MAX_BYTES, json_bytes};

/// Rows of the first step, when their size is not known yet.
const FIRST_ROWS_COUNT: usize = 64;

/// Size limit of the rows of a page, in bytes of JSON. The rest of a reply is for the surrounding fields and for XML tags.
const ROWS_MAX_BYTES: usize = REPLY_MAX_BYTES / 16 * 15;

/// A page being filled.
pub(super) struct LongList<V> {
    limit: usize,
    items: Vec<V>,
    /// Number of distinct names: several items may share one and stay on one page.
    names: usize,
    last: Option<String>,
    bytes: usize,
    is_over: bool,
    has_more: bool,
}

impl<V: Serialize> LongList<V> {
    /// Creates an empty page with a limit.
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, items: Vec::new(), names: 0, last: None, bytes: 0, is_over: false, has_more: false }
    }

    /// Returns the number of rows to read next; `None` when the page is complete.
    pub(super) fn wanted(&self) -> Option<usize> {
        if self.is_over {
            return None;
        }
        let left = self.limit - self.names;
        if self.names == 0 {
            return Some(left.min(FIRST_ROWS_COUNT));
        }
        let usual_bytes = (self.bytes / self.names).max(1);
        let fitting = (ROWS_MAX_BYTES - self.bytes.min(ROWS_MAX_BYTES)) / usual_bytes;
        Some(fitting.clamp(1, left))
    }

    /// Adds rows: as many as were wanted, or all that are left.
    pub(super) fn add(&mut self, wanted: usize, rows: impl IntoIterator<Item = (String, V)>) {
        let before = self.names;
        for (name, item) in rows {
            let is_new = self.last.as_ref() != Some(&name);
            let bytes = json_bytes(&item) + 1;
            if is_new && self.names > 0 && self.bytes + bytes > ROWS_MAX_BYTES {
                (self.is_over, self.has_more) = (true, true);
                return;
            }
            self.names += usize::from(is_new);
            self.bytes += bytes;
            self.last = Some(name);
            self.items.push(item);
        }
        self.has_more = self.names >= self.limit;
        self.is_over = self.has_more || self.names - before < wanted;
    }

    /// Returns the page, and the cursor of the next one.
    pub(super) fn page(self) -> (Vec<V>, Option<String>) {
        (self.items, self.last.filter(|_| self.has_more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a page from `all` rows of `bytes` bytes each. Returns the number of rows, the largest step, and `next`.
    fn read(limit: usize, all: usize, bytes: usize) -> (usize, usize, Option<String>) {
        let (mut list, mut at, mut largest) = (LongList::new(limit), 0, 0);
        while let Some(wanted) = list.wanted() {
            let rows = at..all.min(at + wanted);
            (at, largest) = (rows.end, largest.max(rows.len()));
            list.add(wanted, rows.map(|row| (row.to_string(), "x".repeat(bytes))));
        }
        let (items, next) = list.page();
        (items.len(), largest, next)
    }

    #[test]
    fn a_page_ends_at_its_limit_or_with_the_last_row() {
        assert_eq!(read(1_000, 5_000, 10), (1_000, 936, Some("999".to_owned())));
        assert_eq!(read(10, 5_000, 10), (10, 10, Some("9".to_owned())));
        assert_eq!(read(1_000, 64, 10), (64, 64, None));
        assert_eq!(read(1_000, 0, 10), (0, 0, None));
    }

    #[test]
    fn a_page_of_long_rows_ends_where_a_reply_ends_and_no_more_of_them_are_looked_up() {
        let (count, largest, next) = read(1_000, 5_000, 60_000);
        assert_eq!((count, next), (16, Some("15".to_owned())));
        assert!(largest <= FIRST_ROWS_COUNT);
        assert_eq!(read(1_000, 5_000, 2 * REPLY_MAX_BYTES).0, 1, "a page has one row at least");
    }

    #[test]
    fn what_has_one_name_is_not_parted() {
        let mut list = LongList::new(10);
        let long = || "x".repeat(REPLY_MAX_BYTES / 2);
        let wanted = list.wanted().expect("nothing is there");
        list.add(wanted, ["a", "a", "a", "b"].map(|name| (name.to_owned(), long())));
        let (items, next) = list.page();
        assert_eq!((items.len(), next.as_deref()), (3, Some("a")));
    }
}
