//! Times and sizes, each in one place. "Ours" marks a value that this project chose.
//!
//! Source unless said otherwise: `docs/contract/lifecycle.md`, and `docs/contract/ssh.md`, SSH31 to SSH38.

use std::num::NonZeroUsize;
use std::time::Duration;

use jiff::SignedDuration;

/// TCP connect and SSH handshake together, unless `run --connect-timeout` says otherwise.
pub const CONNECT: SignedDuration = SignedDuration::from_secs(15);

/// The least of `run --connect-timeout` and `run --login-timeout`. Ours.
pub const CONNECT_LEAST: SignedDuration = SignedDuration::from_secs(1);

/// The most of both.
pub const CONNECT_MOST: SignedDuration = SignedDuration::from_mins(10);

/// TCP port of SSH servers, unless an instance has another one. Source: `docs/contract/ssh.md`, SSH30.
pub const SSH_PORT: u16 = 22;

/// Public-key authentication, unless `run --login-timeout` says otherwise: the default `LoginGraceTime` of `sshd`.
pub const AUTHENTICATE: SignedDuration = SignedDuration::from_mins(2);

/// A host whose login takes longer than this no longer counts among the [`SSH_SESSIONS`] until it is done. Ours.
pub const SLOW_LOGIN: SignedDuration = SignedDuration::from_secs(5);

/// Logins that take longer than that and do not count among the [`SSH_SESSIONS`]. Each needs a socket. Ours.
pub const SLOW_LOGINS: usize = 512;

/// Pause between SSH keep-alives; [`KEEP_ALIVES`] unanswered ones end the connection.
pub const KEEP_ALIVE: SignedDuration = SignedDuration::from_secs(15);

/// Unanswered SSH keep-alives that end a connection.
pub const KEEP_ALIVES: usize = 3;

/// Shortest RSA modulus that we log in with, in bits.
pub const RSA_BITS: u32 = 2048;

/// Longest wire form of a public key for a machine, in bytes: an RSA key of 16,384 bits, the longest that OpenSSH
/// accepts.
pub const AUTHORIZED_KEY_BYTES: usize = 2080;

/// Longest user data of a machine before encoding: the limit of AWS, the smallest of all clouds.
pub const USER_DATA_BYTES: usize = 16 * 1024;

/// Longest name of a computer with Windows. Source: Microsoft, "Naming conventions in Active
/// Directory for computers", NetBIOS names.
pub const COMPUTER_NAME_BYTES: usize = 15;

/// Length of the suffix that a Machine's name adds to its MachineSet's: `-` and five characters.
pub const MACHINE_SUFFIX_BYTES: usize = 6;

/// Longest value of a label. A MachineSet's name is a label value on its Machines. Source: Kubernetes, "Labels and
/// selectors".
pub const LABEL_VALUE_BYTES: usize = 63;

/// Longest user name of an entry, in characters: a domain and a name. Source: Microsoft, `UNLEN`.
pub const USERNAME_CHARACTERS: usize = 256;

/// Smallest disk of a machine with Windows, in GiB: the size of Azure's images. Source: OpenShift's samples of
/// Windows MachineSets.
pub const WINDOWS_DISK_GIB: u32 = 128;

/// Smallest disk in those samples, in GiB: that of AWS.
pub const SMALL_WINDOWS_DISK_GIB: u32 = 120;

/// Simultaneous connections to hosts; each needs a few buffers. Ours.
pub const SSH_SESSIONS: usize = 64;

/// Bytes of content in one SFTP write request: with all headers it fits into an SSH packet of 32 KiB.
pub const UPLOAD_BLOCK_BYTES: usize = 32 * 1024 - 512;

/// Simultaneous unanswered SFTP write requests of one host: together as much as an OpenSSH server accepts on one
/// channel before it has to answer, so more would not be faster.
pub const UPLOAD_BLOCKS_IN_FLIGHT: usize = 64;

/// Simultaneous unanswered SFTP write requests of all hosts: 16 MiB, so that eight hosts are as fast as one, and
/// more hosts share. Ours.
pub const UPLOAD_BLOCKS_IN_FLIGHT_IN_ALL: usize = 8 * UPLOAD_BLOCKS_IN_FLIGHT;

/// Time for `wicd probe`, which hashes all files of the operator.
pub const PROBE: SignedDuration = SignedDuration::from_mins(2);

/// Time for `wicd apply`, which may install a Windows feature.
pub const APPLY: SignedDuration = SignedDuration::from_mins(15);

/// An upload is given up after this time without progress.
pub const UPLOAD_STALL: SignedDuration = SignedDuration::from_secs(60);

/// An idle connection to a host is kept this long for the next pass.
pub const CONNECTION_IDLE: SignedDuration = SignedDuration::from_mins(1);

/// How long an object of another component may be missing before it is reported. Ours.
pub const MISSING_OBJECT_PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// How long hosts wait for the cluster to fill a ConfigMap with trusted CAs, so that the CAs and the proxy need a
/// single restart; then they continue without. Ours.
pub const INJECTION: SignedDuration = SignedDuration::from_mins(1);

/// The same where nodes may have such CAs from an operator before this one: without them each would restart, and again
/// when they are back. Ours.
pub const INJECTION_ANEW: SignedDuration = SignedDuration::from_mins(10);

/// How long a new entry may delay the removal of hosts before it is reported. Ours.
pub const LOOK_PATIENCE: SignedDuration = SignedDuration::from_mins(2);

/// How long a kubelet may take from its start to its Node.
pub const NODE_APPEARS: SignedDuration = SignedDuration::from_mins(10);

/// Pause before a kubelet whose Node was deleted is started a second time; doubles up to [`NODE_APPEARS`]. Ours.
pub const KUBELET_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// How long WICD may take from the desired version to the version annotation.
pub const VERSION_MARK: SignedDuration = SignedDuration::from_mins(10);

/// How long a host may take from the restart command to its answer with a new boot identity.
pub const HOST_BACK: SignedDuration = SignedDuration::from_mins(10);

/// Pause before the eviction of remaining pods is tried again.
pub const DRAIN_RETRY: SignedDuration = SignedDuration::from_secs(5);

/// How long a drain may take before the node is uncordoned, unless the operator is configured otherwise. Source:
/// `docs/contract/lifecycle.md`, LIFE20; the value is ours.
pub const DRAIN_TIMEOUT: SignedDuration = SignedDuration::from_hours(1);

/// Shortest drain timeout that can be configured. Ours.
pub const DRAIN_TIMEOUT_LEAST: SignedDuration = SignedDuration::from_secs(10);

/// Longest drain timeout that can be configured. Ours.
pub const DRAIN_TIMEOUT_MOST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A drain that was given up is tried again after the timeout divided by this: 5 minutes for an hour. Doubles each
/// time. Ours.
pub const DRAIN_PAUSE_PART: i32 = 12;

/// Longest pause before a drain is tried again, in timeouts: 4 hours for an hour. Ours.
pub const DRAIN_PAUSE_MOST: i32 = 4;

/// Grace periods of pods extend a drain up to this. Ours.
pub const DRAIN_GRACE_MOST: SignedDuration = SignedDuration::from_hours(24);

/// How long a kubelet may take to end a pod after its grace period. Ours.
pub const POD_END: SignedDuration = SignedDuration::from_secs(30);

/// Longest pause between two attempts at the pods of a drain: pauses grow with the age of the drain. Ours.
pub const DRAIN_RETRY_MOST: SignedDuration = SignedDuration::from_secs(30);

/// Part of the age of a drain that it pauses between two attempts. Ours.
pub const DRAIN_RETRY_PART: i32 = 4;

/// By how much the API server's clock may be ahead of ours when it dates pods. Ours.
pub const POD_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);

/// Most pods of a blocked drain that are named in reports. Ours.
pub const DRAIN_PODS_TOLD: usize = 5;

/// Most bytes of what is said of these pods, but for the first: an Event has 1,024 for that and the next step. Ours.
pub const DRAIN_PODS_TOLD_BYTES: usize = 640;

/// Most bytes of what the API server says of an eviction that it refuses: webhooks may say much. Ours.
pub const REFUSAL_BYTES: usize = 250;

/// Most bytes of all values of a ConfigMap, as the API server takes them.
pub const CONFIG_MAP_BYTES: usize = 1024 * 1024;

/// Longest key of a ConfigMap, as the API server takes it.
pub const CONFIG_MAP_KEY_BYTES: usize = 253;

/// How long a node may hold a disruption slot for which others wait before that is told. Source:
/// `docs/contract/lifecycle.md`, LIFE42.
pub const SLOT_PATIENCE: SignedDuration = SignedDuration::from_mins(2);

/// First pause before an unreachable host is tried again; doubles up to [`RETRY_MOST`].
pub const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(1);

/// Least pause before a server that turned us away for now is tried again. Shortened by [`RETRY_JITTER`] it is not below
/// the 15 seconds of OpenSSH's `PerSourcePenalties`. Source: `docs/contract/ssh.md`, SSH55.
pub const BUSY_LEAST: SignedDuration = SignedDuration::from_secs(17);

/// Pause before a host is checked again on which a foreign object has to be removed by an administrator.
pub const FOREIGN_CHECK: SignedDuration = SignedDuration::from_secs(120);

/// Pause before a host of another cluster is looked at again. Our agent is brought there each time.
pub const OTHER_CLUSTER_CHECK: SignedDuration = SignedDuration::from_mins(10);

/// Most bytes of an answer of the API server that are repeated: an Event has 1,024 for all of it.
pub const ANSWER_BYTES: usize = 500;

/// Most bytes of a file with objects that a command reads. Ours.
pub const INPUT_BYTES: u64 = 512 * 1024 * 1024;

/// Free disk space, in bytes, that a host needs to become a node: twice the payload.
pub const FREE_DISK_LEAST: u64 = 2_000_000_000;

/// Free disk space, in bytes, that such a host should have, also for logs and the first images.
pub const FREE_DISK_ADVISED: u64 = 20_000_000_000;

/// Longest pause between two attempts at a host.
pub const RETRY_MOST: SignedDuration = SignedDuration::from_secs(60);

/// Part by which a pause may be shorter, at random, so that hosts that failed together are not tried together. Ours.
pub const RETRY_JITTER: f64 = 0.1;

/// Returns the pause after so many earlier failures in a row: [`RETRY_FIRST`], doubled each time up to [`RETRY_MOST`].
pub fn retry_pause(earlier: u32) -> SignedDuration {
    let doubled = 2_i32.saturating_pow(earlier);
    RETRY_FIRST.checked_mul(doubled).map_or(RETRY_MOST, |pause| pause.min(RETRY_MOST))
}

/// How long the replacement of a Machine may take before it is reported. Ours.
pub const SUCCESSOR_PATIENCE: SignedDuration = SignedDuration::from_mins(30);

/// Number of replaced Machines of a MachineSet without a working successor at which replacing stops, so that an
/// administrator can check why new Machines refuse our key. Ours.
pub const FAILED_SUCCESSORS: usize = 3;

/// How long a host of the Machine API may refuse our key before its Machine is replaced: its user data may still be
/// running. Source: `docs/contract/machines.md`, MACH12.
pub const LOGIN_REFUSED: SignedDuration = SignedDuration::from_mins(5);

/// How long a host without an answer may block the exchange of our key before an Event is recorded and its Machine,
/// if it has one, is replaced.
pub const ROTATION_PATIENCE: SignedDuration = SignedDuration::from_mins(30);

/// Pause between two checks of a host without work.
pub const RESYNC: SignedDuration = SignedDuration::from_mins(30);

/// How long to wait until our own write is visible through a watch. Ours.
pub const CATCH_UP: SignedDuration = SignedDuration::from_secs(5);

/// How long a request may last that takes a disruption slot, while others wait for it. Ours.
pub const SLOT_REQUEST: SignedDuration = SignedDuration::from_mins(1);

/// How long a DNS answer is used, so that a moved host is noticed. Ours.
pub const NAME_LIFETIME: SignedDuration = SignedDuration::from_secs(60);

/// Restart delays of the WICD service after a failure; the last one repeats.
pub const WICD_RESTART_DELAYS: [SignedDuration; 4] = [
    SignedDuration::from_secs(10),
    SignedDuration::from_secs(30),
    SignedDuration::from_secs(60),
    SignedDuration::from_secs(120),
];

/// Time without failures after which failures of the WICD service are forgotten.
pub const WICD_FAILURE_RESET: SignedDuration = SignedDuration::from_secs(300);

/// How long a Windows service may take to stop before its process is ended.
pub const SERVICE_STOP: SignedDuration = SignedDuration::from_mins(2);

/// How long a Windows service may take to start.
pub const SERVICE_START: SignedDuration = SignedDuration::from_mins(2);

/// Most nodes that are disrupted at the same time. Source: `docs/contract/lifecycle.md`, LIFE15.
pub const DISRUPTION_BUDGET: NonZeroUsize = NonZeroUsize::MIN;

/// Most bytes of output from one remote command.
pub const OUTPUT_BYTES: usize = 8 * 1024 * 1024;

/// Pods on one node. Source: `docs/contract/node-files.md`, FILE9.
pub const PODS_PER_NODE: u32 = 250;

/// Most bytes of a file from the Linux workers' configuration. etcd stores no bigger objects, but compressed
/// content may grow.
pub const IGNITION_FILE_BYTES: usize = 8 * 1024 * 1024;

/// How often a certificate request is decided again at once after a write conflict. Source:
/// `docs/contract/certificate-requests.md`, CSR52.
pub const CSR_CONFLICTS: u32 = 3;

/// Pause before an object of the operator's own is corrected for the third time in quick succession; doubles each time.
/// Ours.
pub const CORRECTION_FIRST: Duration = Duration::from_secs(10);

/// Longest such pause. Ours.
pub const CORRECTION_MOST: Duration = Duration::from_secs(600);

/// How soon after the last pause another correction is one in quick succession. Ours.
pub const CORRECTION_AGAIN: Duration = Duration::from_secs(60);

/// Returns the time in which changes are gathered before a pass over so many instances: the more a pass has to look at,
/// the more changes it looks at. 20 ms for up to 40 instances, 1 s for 2,000 and more. Ours.
pub fn gather(instances: usize) -> Duration {
    const EACH: Duration = Duration::from_micros(500);
    const LEAST: Duration = Duration::from_millis(20);
    const MOST: Duration = Duration::from_secs(1);
    EACH.saturating_mul(u32::try_from(instances).unwrap_or(u32::MAX)).clamp(LEAST, MOST)
}

/// Number of Events of one series, that is about one subject on one object, that may be sent at once. Source: the default
/// of the Kubernetes project's library for clients in Go, which counts by object.
pub const SERIES_EVENT_BURST: u32 = 25;

/// Time after which a series may have one Event more. Source: as above.
pub const SERIES_EVENT_INTERVAL: Duration = Duration::from_secs(300);

/// How many series are counted at the same time. Source: as above.
pub const EVENT_SERIES: usize = 4_096;

/// Number of Events of one reason, about attempts that fail again, that may be sent at once for all series together.
/// With the interval at most 20 in a minute. Ours.
pub const FAILURE_EVENT_BURST: u32 = 10;

/// Time after which there may be one more of these. Ours.
pub const FAILURE_EVENT_INTERVAL: Duration = Duration::from_secs(6);

/// How many Events may wait to be sent; more are dropped and counted. Ours.
pub const EVENTS_WAITING: usize = 1_000;

/// How long the operator's end may wait for Events to be sent. Ours.
pub const EVENTS_END: SignedDuration = SignedDuration::from_secs(5);

/// How long a problem whose words change, such as a count, is not told again. Ours.
pub const PROBLEM_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// Most bytes of an Event's action. Source: Kubernetes API reference, Event `action`.
pub const EVENT_ACTION_BYTES: usize = 128;

/// Most bytes of an Event's note. Source: Kubernetes API reference, Event `note`.
pub const EVENT_NOTE_BYTES: usize = 1024;

/// How long a cache of Nodes may take to prove that it is as new as an answer of the API server. Ours.
pub const CACHE_PROOF: SignedDuration = SignedDuration::from_millis(500);

/// Most bytes that are hashed for the key of an encrypted user name. The Go operator uses 64 KiB. Ours.
pub const USERNAME_KEY_WORK_BYTES: usize = 1 << 20;

/// Bytes that aliases may add to the YAML of one file. Ours.
pub const YAML_ALIAS_BYTES: usize = 256 * 1024;

/// Nodes that aliases may repeat in one YAML document. Ours.
pub const YAML_ALIAS_NODES: usize = 10_000;

/// Lease duration: how long others respect a leader's Lease after its last renewal. This and the next two values
/// tolerate an API server outage of a minute. Source: OpenShift's conventions for operators.
pub const LEASE: SignedDuration = SignedDuration::from_secs(137);

/// Renew deadline: a leader that could not renew its Lease for this time stops leading.
pub const LEASE_RENEW_DEADLINE: SignedDuration = SignedDuration::from_secs(107);

/// Pause between two attempts to acquire or renew a Lease.
pub const LEASE_RETRY: SignedDuration = SignedDuration::from_secs(26);

/// Longest time to release a Lease, and before that to finish a renewal in progress: a terminating Pod has little
/// time. Ours.
pub const LEASE_RELEASE: SignedDuration = SignedDuration::from_secs(2);

/// Longest time for the headers of a metrics or health request. Ours.
pub const HTTP_HEADERS: SignedDuration = SignedDuration::from_secs(5);

/// Longest time for a metrics or health request, from the connection to the end of the answer.
pub const HTTP_REQUEST: SignedDuration = SignedDuration::from_secs(10);

/// Most simultaneous connections for metrics and health. Ours.
pub const HTTP_CONNECTIONS: usize = 64;

/// How long metrics and health requests may take when the process ends. Ours.
pub const HTTP_END: SignedDuration = SignedDuration::from_secs(1);

/// How often the operator's own objects are read from the API server itself, independently of watches. Ours.
pub const OWNED_RESYNC: SignedDuration = SignedDuration::from_mins(10);

/// Longest name of an image, with its registry and without tag and digest. Source: the reference
/// grammar of the Distribution project.
pub const IMAGE_NAME_BYTES: usize = 255;

/// Longest tag of an image. Source: the OCI distribution specification, "Pulling manifests".
pub const IMAGE_TAG_BYTES: usize = 128;

/// Longest path that every program on Windows can open. Source: Microsoft, "Maximum path length limitation",
/// without the terminating null.
pub const WINDOWS_PATH_CHARACTERS: usize = 259;

/// Longest name of an object. Source: "Object Names and IDs" in the Kubernetes documentation, DNS subdomain names.
pub const OBJECT_NAME_BYTES: usize = 253;

/// Most bytes of a text from an object that a finding repeats. Ours.
pub const FINDING_TEXT_BYTES: usize = 120;

/// Most findings about one object that are reported as Events; one more Event counts the others. Ours.
pub const FINDINGS_TOLD: usize = 8;

/// Longest TLS handshake with a client of metrics and health. Ours.
pub const HTTP_HANDSHAKE: SignedDuration = SignedDuration::from_secs(5);

/// How long the result of a TokenReview is cached. Source of this and the next two values:
/// `docs/contract/cluster.md`, CLU24.
pub const TOKEN_KNOWN: SignedDuration = SignedDuration::from_mins(1);

/// How long a client's permission to scrape our metrics is cached.
pub const SCRAPE_ALLOWED: SignedDuration = SignedDuration::from_mins(5);

/// How long a client's refusal for our metrics is cached.
pub const SCRAPE_DENIED: SignedDuration = SignedDuration::from_secs(30);

/// Longest review request to the API server about a client of metrics. Ours.
pub const REVIEW: SignedDuration = SignedDuration::from_secs(4);

/// Most cached clients of metrics. Ours.
pub const CLIENTS_KNOWN: usize = 256;

/// How long work on an instance may be stuck before it no longer blocks an upgrade of the operator: the present
/// version does not solve the problem, and the next version continues where this one stopped. Ours.
pub const UPGRADE_PATIENCE: SignedDuration = SignedDuration::from_hours(1);

/// Most stages of work on one instance that count as progress before it is settled: work that repeats itself makes
/// no progress. Ours.
pub const WORK_STAGES: usize = 64;

/// How long the fleet has to be idle before the operator may be upgraded, and the shortest pause between two
/// messages about its work. Ours.
pub const CONDITION_REST: SignedDuration = SignedDuration::from_secs(5);

/// Most instances that a condition names. Ours.
pub const CONDITION_NAMES: usize = 10;

/// How long a process that starts waits for its caches before it tells which it waits for, and again after as long.
pub const UNKNOWN_PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// How often the OperatorCondition is checked even without events. Ours.
pub const CONDITION_RESYNC: SignedDuration = SignedDuration::from_mins(10);
