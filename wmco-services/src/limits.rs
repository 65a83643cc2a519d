//! Times and sizes that only the host side needs. Those that the operator needs too are in [`wmco_core::limits`].

use jiff::SignedDuration;

/// Most time that a service may take to report that it stops; then it ignores the request. The Service Control Manager
/// gives a service the same time to answer.
pub const SERVICE_ANSWER: SignedDuration = SignedDuration::from_secs(30);

/// Most time for starting or stopping a service that keeps reporting progress: five times the usual limit, enough for a
/// service to repair its data, but within the time that the operator waits for a whole plan,
/// [`wmco_core::limits::APPLY`].
pub const SERVICE_PROGRESSING: SignedDuration = SignedDuration::from_mins(10);

/// Most time that a pre-script may run. The network script waits up to 20 s each for its network, its endpoint and the
/// endpoint's address.
pub const SCRIPT: SignedDuration = SignedDuration::from_mins(2);

/// Age at which the scripts of a running service are run again.
pub const SCRIPT_REFRESH: SignedDuration = SignedDuration::from_mins(30);

/// Age at which the scripts of a service that does not run are run again.
pub const SCRIPT_RECHECK: SignedDuration = SignedDuration::from_mins(2);

/// Pause before a failed script is run again.
pub const SCRIPT_RETRY: SignedDuration = SignedDuration::from_secs(15);

/// Most Nodes that the daemon lists at once: some megabytes, of which it keeps little.
pub const NODE_PAGE: u32 = 100;

/// Pause between two passes of the daemon that found nothing to do.
///
/// Source: `docs/contract/wicd.md`, WICD50.
pub const DAEMON_RESYNC: SignedDuration = SignedDuration::from_mins(2);

/// Pause between two polls of the services, so that a service that stops is soon restarted.
pub const DAEMON_POLL: SignedDuration = SignedDuration::from_secs(10);

/// Pause before a pass that waits for a service's answer checks again.
///
/// Source: `docs/contract/wicd.md`, WICD51.
pub const DAEMON_RECHECK: SignedDuration = SignedDuration::from_secs(5);

/// Rounds of observing and acting within one pass; more means that something reverts our changes.
pub const ROUNDS: usize = 8;

/// Most time that a health endpoint on the host may take to answer.
pub const HEALTH: SignedDuration = SignedDuration::from_secs(3);

/// Most time that the cloud's metadata service may take to answer.
pub const METADATA: SignedDuration = SignedDuration::from_secs(5);

/// The same for the agent, which describes the host often and goes on without an answer.
pub const METADATA_OF_PROBE: SignedDuration = SignedDuration::from_secs(2);

/// Most bytes of an answer to an HTTP request.
pub const HTTP_BYTES: u64 = 16 * 1024;

/// Most bytes of a JSON file that the agent reads as a whole (plan, state).
pub const JSON_BYTES: usize = 16 * 1024 * 1024;

/// Most bytes of a file of SSH public keys: some thousand keys.
pub const KEYS_BYTES: usize = 1024 * 1024;

/// Most bytes of a CA bundle.
pub const BUNDLE_BYTES: usize = 16 * 1024 * 1024;

/// Age below which a certificate file of hybrid-overlay-node is left alone.
///
/// Source: `docs/contract/wicd.md`, WICD45.
pub const OVN_CERTIFICATE_AGE: SignedDuration = SignedDuration::from_mins(10);

/// Share of a certificate's life after which its successor is requested: random between these two.
///
/// Source: `docs/contract/wicd.md`, WICD42.
pub const CERTIFICATE_SHARE: (f64, f64) = (0.7, 0.9);

/// Shortest certificate lifetime that the API accepts in a request.
///
/// Source: Kubernetes, `CertificateSigningRequestSpec.expirationSeconds`.
pub const CERTIFICATE_SHORTEST: SignedDuration = SignedDuration::from_mins(10);

/// Most time that a request may wait for its certificate. Source: `docs/contract/wicd.md`, WICD42.
pub const CERTIFICATE_ISSUE: SignedDuration = SignedDuration::from_mins(15);

/// Least time that a new certificate is used, unless half of its life is shorter.
pub const CERTIFICATE_SOONEST: SignedDuration = SignedDuration::from_secs(10);

/// Pause before a failed certificate request is repeated, at first and at most.
///
/// Source: `docs/contract/wicd.md`, WICD42.
pub const CERTIFICATE_RETRY: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(2), SignedDuration::from_secs(32));

/// Most bytes of a certificate chain with its key.
pub const CERTIFICATE_BYTES: usize = 1024 * 1024;

/// Pause of the daemon after a failed pass, at first and at most.
pub const DAEMON_RETRY: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(1), SignedDuration::from_mins(2));

/// Pause before the daemon looks again for a Node that the kubelet has not registered yet, at first and at most. No
/// contract sets it.
pub const NODE_SEARCH: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(2), SignedDuration::from_secs(15));

/// The same for a Node that existed and is gone, perhaps for good.
///
/// Source: `docs/contract/wicd.md`, WICD38.
pub const NODE_GONE: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(2), SignedDuration::from_mins(3));

/// Most time that the daemon takes to stop; work that is not done by then is abandoned.
///
/// Source: `docs/contract/wicd.md`, WICD24.
pub const DAEMON_STOP: SignedDuration = SignedDuration::from_secs(20);

/// Time for which the daemon's service reports that it is starting while the cluster cannot be reached. Then it reports
/// that it runs, since it keeps trying.
///
/// Source: `docs/contract/wicd.md`, WICD23.
pub const DAEMON_START: SignedDuration = SignedDuration::from_secs(30);

/// Bytes of a log file of the daemon or a service before the next file is begun, unless configured otherwise.
pub const LOG_BYTES: u64 = 100 * 1_000_000;

/// Number of files of a log, including the current one; also the limit of a log in multiples of the bytes of a file.
pub const LOG_FILES: usize = 5;

/// Pause between two checks of service logs. A program that writes a gigabyte a second writes a whole file in between.
pub const LOG_POLL: SignedDuration = SignedDuration::from_millis(100);

/// Most truncations in a row of a log that begins with zeros again after each.
pub const LOG_FUTILE_TRUNCATIONS: u32 = 8;

/// Pause between two full checks of all files of all logs, whatever the quick check shows.
pub const LOG_FULL_CHECK: SignedDuration = SignedDuration::from_mins(1);

/// Age at which an unused staged file is removed.
pub const STAGED_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Most memory of the decompression window, as a power of two in bytes.
pub const ZSTD_WINDOW_LOG: u32 = 25;
