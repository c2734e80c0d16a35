//! A subset of a batch's requests, sent again or alone.

use std::sync::Arc;

use stentor_http2::{Line, Requests};

/// The requests of `of` at these positions, in their order.
pub(crate) struct Subset {
    pub(crate) of: Arc<dyn Requests>,
    pub(crate) places: Vec<usize>,
}

impl Requests for Subset {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        self.of.write(self.places[index], line);
    }
}
