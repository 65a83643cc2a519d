//! Law: a path template gives itself, an error, or a text of the node.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../wmco-services/tests/it/outside/node_path.rs"]
mod law;

fuzz_target!(|text: &str| {
    law::a_path_gives_a_text_of_the_node(text);
});
