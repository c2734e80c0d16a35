//! The life of a campaign, as rules over values: how its deliveries move, what ends with it, and when it is over.
//!
//! An engine keeps rows and asks here what becomes of them, so that every engine decides alike. Nothing here reads a row, a
//! clock or a configuration.

mod books;
mod life;

pub use books::{Books, TooFew};
pub use life::{Ending, Finish, Standing, decide, ending, finish};
