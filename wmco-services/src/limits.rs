//! Times and sizes that only the host side knows. Those that the operator needs, too, are in
//! [`wmco_core::limits`].

use jiff::SignedDuration;

/// How long a service that was told to stop may go on without saying that it stops; then it ignores
/// that. The Service Control Manager gives a service as long to answer.
pub const SERVICE_ANSWER: SignedDuration = SignedDuration::from_secs(30);

/// How long a service may start or stop that says all the time that it gets on: five times as long as
/// another, so that one that puts its data in order can do so, but no longer than what the operator waits
/// for a whole plan, [`wmco_core::limits::APPLY`], leaves room for.
pub const SERVICE_HONEST: SignedDuration = SignedDuration::from_mins(10);

/// How long one pre-script may run. The network script waits up to 20 s each for its network, its
/// endpoint and the address of that.
pub const SCRIPT: SignedDuration = SignedDuration::from_mins(2);

/// Age at which the results of a running service's scripts are asked for again.
pub const SCRIPT_REFRESH: SignedDuration = SignedDuration::from_mins(30);

/// Age at which the results of the scripts of a service that does not run are asked for again.
pub const SCRIPT_RECHECK: SignedDuration = SignedDuration::from_mins(2);

/// Pause before a script that failed is tried again.
pub const SCRIPT_RETRY: SignedDuration = SignedDuration::from_secs(15);

/// Most Nodes that the daemon asks the cluster for at once: some megabytes, of which it keeps little.
pub const NODE_PAGE: u32 = 100;

/// Pause between two passes of the daemon that found nothing to do.
///
/// Source: `spec/wicd.md`, section 8.2.
pub const DAEMON_RESYNC: SignedDuration = SignedDuration::from_mins(2);

/// Pause between two glances at the services, so that one that stops comes back soon.
pub const DAEMON_GLANCE: SignedDuration = SignedDuration::from_secs(10);

/// Pause before a pass that waits for a service to answer looks again.
///
/// Source: `spec/wicd.md`, section 9, step 11.
pub const DAEMON_RECHECK: SignedDuration = SignedDuration::from_secs(5);

/// Rounds of observing and acting within one pass; more means that something works against us.
pub const ROUNDS: usize = 8;

/// How long a health endpoint on the host may take to answer.
pub const HEALTH: SignedDuration = SignedDuration::from_secs(3);

/// How long the cloud's metadata service may take to answer.
pub const METADATA: SignedDuration = SignedDuration::from_secs(5);

/// Most bytes of an answer to an HTTP request.
pub const HTTP_BYTES: u64 = 16 * 1024;

/// Most bytes of a JSON file that the agent reads as a whole (plan, state).
pub const JSON_BYTES: usize = 16 * 1024 * 1024;

/// Most bytes of a file of keys that users log in with: some thousand keys.
pub const KEYS_BYTES: usize = 1024 * 1024;

/// Most bytes of a CA bundle.
pub const BUNDLE_BYTES: usize = 16 * 1024 * 1024;

/// Age below which a certificate file of hybrid-overlay-node is left alone.
///
/// Source: `spec/wicd.md`, section 23.2, row 11.
pub const OVN_CERTIFICATE_AGE: SignedDuration = SignedDuration::from_mins(10);

/// Share of a certificate's life after which the next one is asked for: drawn between these two.
///
/// Source: `spec/wicd.md`, section 7.2.
pub const CERTIFICATE_SHARE: (f64, f64) = (0.7, 0.9);

/// Shortest life of a certificate that the API lets anybody ask for.
///
/// Source: Kubernetes, `CertificateSigningRequestSpec.expirationSeconds`.
pub const CERTIFICATE_SHORTEST: SignedDuration = SignedDuration::from_mins(10);

/// How long a request may wait for its certificate. Source: `spec/wicd.md`, section 7.2.
pub const CERTIFICATE_ISSUE: SignedDuration = SignedDuration::from_mins(15);

/// A new certificate is used at least this long, or half of its life.
pub const CERTIFICATE_SOONEST: SignedDuration = SignedDuration::from_secs(10);

/// Pause before a failed request for a certificate is made again, at first and at most.
///
/// Source: `spec/wicd.md`, section 7.2.
pub const CERTIFICATE_RETRY: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(2), SignedDuration::from_secs(32));

/// Most bytes of a certificate chain with its key.
pub const CERTIFICATE_BYTES: usize = 1024 * 1024;

/// Pause of the daemon after a pass that failed, at first and at most.
pub const DAEMON_RETRY: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(1), SignedDuration::from_mins(2));

/// Pause before the daemon looks again for a Node that the kubelet has not made yet, at first and at
/// most. Ours.
pub const NODE_SEARCH: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(2), SignedDuration::from_secs(15));

/// The same for a Node that was there and is gone, perhaps for good.
///
/// Source: `spec/wicd.md`, section 23.3, row 24.
pub const NODE_GONE: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(2), SignedDuration::from_mins(3));

/// How long the daemon takes to stop at most; what it does then is abandoned.
///
/// Source: `spec/wicd.md`, section 23.1, row 1.
pub const DAEMON_STOP: SignedDuration = SignedDuration::from_secs(20);

/// How long the daemon's service is reported as starting while the cluster cannot be reached. Then it
/// counts as running, since it does not give up.
///
/// Source: `spec/wicd.md`, section 23.1, row 4.
pub const DAEMON_START: SignedDuration = SignedDuration::from_secs(30);

/// Bytes of a log file of the daemon before a new one is begun, unless it is told otherwise.
pub const LOG_BYTES: u64 = 100 * 1_000_000;

/// Log files of the daemon that are kept, the one in use included.
pub const LOG_FILES: usize = 5;

/// Age at which a staged file that nobody used is removed.
pub const STAGED_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Most memory that unpacking may take for its window, as a power of two in bytes.
pub const ZSTD_WINDOW_LOG: u32 = 25;
