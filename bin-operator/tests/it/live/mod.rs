//! The operator against the embedded cluster and simulated hosts: real HTTPS, real SSH.

mod bad_input;
mod bindings;
mod claims;
mod crash;
mod drain;
mod foreign_nodes;
mod join;
mod jump;
mod leader;
mod mass_removal;
mod new_services;
mod node;
mod open_host;
mod other_address;
mod pins;
mod planted;
mod process;
mod processes;
mod removal;
mod rights;
mod scenery;
mod secrets;
mod services_map;
mod stop;
mod worker_pool;
mod workers;
