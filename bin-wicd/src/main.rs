//! WICD, the daemon on each Windows node.

fn main() {
    // What the library for exit codes offers ends at 255.
    std::process::exit(bin_wicd::run(std::env::args_os()))
}
