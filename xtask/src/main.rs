//! The scripts of the house.
fn main() {}
