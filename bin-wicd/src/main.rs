//! WICD, the daemon on each Windows node.
fn main() {}
