//! The operator against the embedded cluster and simulated hosts: real HTTPS, real SSH.

mod bad_input;
mod crash;
mod join;
mod jump;
mod leader;
mod new_services;
mod open_host;
mod planted;
mod removal;
mod rights;
mod scenery;
mod secrets;
mod services_map;
mod stop;
mod worker_pool;
