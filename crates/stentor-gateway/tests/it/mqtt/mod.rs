//! MQTT over connections, with bytes as the standard writes them.

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
