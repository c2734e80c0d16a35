//! Fronts: APIs of others, asked as their clients ask.

mod gorush;
