//! MQTT over connections, with the bytes of the standard.

mod client;
mod deliveries;
mod last_states;
mod limits;
mod logins;
mod rules;
mod sealed;
mod statements;
mod upstream;
mod wills;
