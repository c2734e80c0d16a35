//! End-to-end stories: real processes, started as a user would start them.

mod commands;
mod demo;
mod messages;
mod process;
mod server;
