//! MQTT over connections, with bytes as the standard writes them.

mod client;
mod deliveries;
mod limits;
mod logins;
mod sealed;
mod upstream;
