//! Times and sizes that only the host side knows. Those that the operator needs, too, are in
//! [`wmco_core::limits`].

use jiff::SignedDuration;

/// How long one pre-script may run. The network script waits up to 20 s for its network.
pub const SCRIPT: SignedDuration = SignedDuration::from_mins(2);

/// Age at which the results of a running service's scripts are asked for again.
pub const SCRIPT_REFRESH: SignedDuration = SignedDuration::from_mins(30);

/// Age at which the results of the scripts of a service that does not run are asked for again.
pub const SCRIPT_RECHECK: SignedDuration = SignedDuration::from_mins(2);

/// Pause before a script that failed is tried again.
pub const SCRIPT_RETRY: SignedDuration = SignedDuration::from_secs(15);

/// Pause between two passes of the daemon that found nothing to do.
///
/// Source: `spec/wicd.md`, section 8.2.
pub const DAEMON_RESYNC: SignedDuration = SignedDuration::from_mins(2);

/// Pause before a pass that waits for something on the host or the node looks again.
///
/// Source: `spec/wicd.md`, section 9, step 11.
pub const DAEMON_RECHECK: SignedDuration = SignedDuration::from_secs(5);

/// Rounds of observing and acting within one pass; more means that something works against us.
pub const ROUNDS: usize = 8;

/// Most bytes of a JSON file that the agent reads as a whole (plan, state).
pub const JSON_BYTES: usize = 16 * 1024 * 1024;

/// Most bytes of a CA bundle.
pub const BUNDLE_BYTES: usize = 16 * 1024 * 1024;

/// Age below which a certificate file of hybrid-overlay-node is left alone.
///
/// Source: `spec/wicd.md`, section 23.2, row 11.
pub const OVN_CERTIFICATE_AGE: SignedDuration = SignedDuration::from_mins(10);

/// Age at which a staged file that nobody used is removed.
pub const STAGED_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Most memory that unpacking may take for its window, as a power of two in bytes.
pub const ZSTD_WINDOW_LOG: u32 = 25;
