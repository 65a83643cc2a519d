//! Times and sizes, each in one place.
//!
//! Source unless said otherwise: `spec/node-config.md`, section 10, and `spec/ssh.md`, section 17.

use jiff::SignedDuration;

/// TCP connect and SSH handshake together.
pub const CONNECT: SignedDuration = SignedDuration::from_secs(15);

/// TCP port of SSH servers, unless an instance names another. Source: `spec/ssh.md`, section 4.
pub const SSH_PORT: u16 = 22;

/// Public-key authentication.
pub const AUTHENTICATE: SignedDuration = SignedDuration::from_secs(20);

/// Pause between SSH keep-alives; [`KEEP_ALIVES`] unanswered ones end the connection.
pub const KEEP_ALIVE: SignedDuration = SignedDuration::from_secs(15);

/// Unanswered SSH keep-alives that end a connection.
pub const KEEP_ALIVES: usize = 3;

/// Shortest RSA modulus that we log in with, in bits.
pub const RSA_BITS: u32 = 2048;

/// Longest wire form of a public key that a machine is given, in bytes: an RSA key of 16,384 bits, the
/// longest that OpenSSH takes.
pub const AUTHORIZED_KEY_BYTES: usize = 2080;

/// Longest user data of a machine, before it is encoded: what AWS takes, the least of all clouds.
pub const USER_DATA_BYTES: usize = 16 * 1024;

/// Longest name of a computer with Windows. Source: Microsoft, "Naming conventions in Active
/// Directory for computers", NetBIOS names.
pub const COMPUTER_NAME_BYTES: usize = 15;

/// What a Machine's name has more than its MachineSet's: `-` and five characters.
pub const MACHINE_SUFFIX_BYTES: usize = 6;

/// Longest value of a label. A MachineSet's name is one on its Machines. Source: Kubernetes, "Labels
/// and selectors".
pub const LABEL_VALUE_BYTES: usize = 63;

/// Smallest disk of a machine with Windows, in GiB: the images of Azure are as large. Source:
/// OpenShift's samples of Windows MachineSets.
pub const WINDOWS_DISK_GIB: u32 = 128;

/// Connections to hosts at the same time; each costs a few buffers. Ours.
pub const SSH_SESSIONS: usize = 64;

/// Bytes of content in one SFTP write request: with all headers it fits into one SSH packet of
/// 32 KiB.
pub const UPLOAD_BLOCK_BYTES: usize = 32 * 1024 - 512;

/// SFTP write requests of one host that wait for their answers at the same time: together what an
/// OpenSSH server takes on one channel before it has to answer, so more would not be quicker.
pub const UPLOAD_BLOCKS_IN_FLIGHT: usize = 64;

/// The same of all hosts together: 16 MiB, so that eight of them are served as quickly as one, and more
/// share. Ours.
pub const UPLOAD_BLOCKS_IN_FLIGHT_IN_ALL: usize = 8 * UPLOAD_BLOCKS_IN_FLIGHT;

/// `wicd probe`: it hashes all files that we own.
pub const PROBE: SignedDuration = SignedDuration::from_mins(2);

/// `wicd apply`: it may install a Windows feature.
pub const APPLY: SignedDuration = SignedDuration::from_mins(15);

/// An upload without any progress is given up after this.
pub const UPLOAD_STALL: SignedDuration = SignedDuration::from_secs(60);

/// An idle connection to a host is kept this long for the next pass.
pub const CONNECTION_IDLE: SignedDuration = SignedDuration::from_mins(1);

/// How long an object that somebody else makes may be missing before a person hears of it. Ours.
pub const MISSING_OBJECT_PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// How long a new entry may keep hosts from leaving before a person hears of it. Ours.
pub const LOOK_PATIENCE: SignedDuration = SignedDuration::from_mins(2);

/// How long a kubelet may take from its start to its Node.
pub const NODE_APPEARS: SignedDuration = SignedDuration::from_mins(10);

/// Pause before a kubelet whose Node is gone is started a second time; doubles up to
/// [`NODE_APPEARS`]. Ours.
pub const KUBELET_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// How long WICD may take from the desired version to the version annotation.
pub const VERSION_MARK: SignedDuration = SignedDuration::from_mins(10);

/// How long a host may take from the order to restart to its answer with a new boot identity.
pub const HOST_BACK: SignedDuration = SignedDuration::from_mins(10);

/// Pause before pods that did not leave are asked again.
pub const DRAIN_RETRY: SignedDuration = SignedDuration::from_secs(5);

/// How long a drain may take before the node is given back, unless the operator is told otherwise.
/// Source: `spec/node-config.md`, section 13, row 2; the length is ours.
pub const DRAIN_TIMEOUT: SignedDuration = SignedDuration::from_hours(1);

/// Shortest and longest time-out of drains that can be asked for. Ours.
pub const DRAIN_TIMEOUT_LEAST: SignedDuration = SignedDuration::from_secs(10);

/// See [`DRAIN_TIMEOUT_LEAST`].
pub const DRAIN_TIMEOUT_MOST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A drain that was given up is tried again after the time-out divided by this: 5 minutes for an
/// hour. Doubles each time. Ours.
pub const DRAIN_PAUSE_PART: i32 = 12;

/// Longest pause before a drain is tried again, in time-outs: 4 hours for an hour. Ours.
pub const DRAIN_PAUSE_MOST: i32 = 4;

/// Grace periods of pods extend a drain up to this. Ours.
pub const DRAIN_GRACE_MOST: SignedDuration = SignedDuration::from_hours(24);

/// How long a kubelet may take to end a pod after its grace period. Ours.
pub const POD_END: SignedDuration = SignedDuration::from_secs(30);

/// Most pods of a blocked drain that are told by name. Ours.
pub const DRAIN_PODS_TOLD: usize = 5;

/// Pause before an unreachable host is tried again, at first; doubles up to [`RETRY_MOST`].
pub const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(1);

/// Longest pause between two attempts at one host.
pub const RETRY_MOST: SignedDuration = SignedDuration::from_secs(60);

/// How long a Machine that is made anew may take before a person hears of it. Ours.
pub const SUCCESSOR_PATIENCE: SignedDuration = SignedDuration::from_mins(30);

/// How many Machines of a MachineSet are made anew while none of those works that take their places. After
/// that people look why new ones refuse our key. Ours.
pub const REPLACED_IN_VAIN: usize = 3;

/// How long a host of the Machine API may refuse our key before its Machine is replaced: its user data
/// may still be running. Source: `spec/node-config.md`, section 2.
pub const LOGIN_REFUSED: SignedDuration = SignedDuration::from_mins(5);

/// How long a host may hold up the exchange of our key without an answer before people are told and its
/// Machine, if it has one, is replaced.
pub const ROTATION_PATIENCE: SignedDuration = SignedDuration::from_mins(30);

/// Pause between two looks at a host that has nothing to do.
pub const RESYNC: SignedDuration = SignedDuration::from_mins(30);

/// How long to wait until our own write comes back through a watch. Ours.
pub const CATCH_UP: SignedDuration = SignedDuration::from_secs(5);

/// How long an answer of the DNS is used, so that a moved host is noticed. Ours.
pub const NAME_LIFETIME: SignedDuration = SignedDuration::from_secs(60);

/// Restart delays of the WICD service after a failure; the last one repeats.
pub const WICD_RESTART_DELAYS: [SignedDuration; 4] = [
    SignedDuration::from_secs(10),
    SignedDuration::from_secs(30),
    SignedDuration::from_secs(60),
    SignedDuration::from_secs(120),
];

/// Failures of the WICD service are forgotten after this.
pub const WICD_FAILURE_RESET: SignedDuration = SignedDuration::from_secs(300);

/// How long a Windows service may take to stop before its process is ended.
pub const SERVICE_STOP: SignedDuration = SignedDuration::from_mins(2);

/// How long a Windows service may take to start.
pub const SERVICE_START: SignedDuration = SignedDuration::from_mins(2);

/// Most nodes that we disrupt at the same time. Source: `spec/operator.md`, section 7.
pub const DISRUPTION_BUDGET: usize = 1;

/// Most bytes of output that one remote command may give.
pub const OUTPUT_BYTES: usize = 8 * 1024 * 1024;

/// Pods on one node. Source: `spec/node-config.md`, section 5.1.
pub const PODS_PER_NODE: u32 = 250;

/// Most bytes of one file that is taken over from the Linux workers. etcd holds no bigger objects,
/// but compressed content may grow.
pub const IGNITION_FILE_BYTES: usize = 8 * 1024 * 1024;

/// How often a certificate request is decided anew at once, after a write that met a newer version.
/// Source: `spec/csr.md`, section 4.1.
pub const CSR_CONFLICTS: u32 = 3;

/// Most bytes of an Event's action. Source: Kubernetes API reference, Event `action`.
pub const EVENT_ACTION_BYTES: usize = 128;

/// Most bytes of an Event's note. Source: Kubernetes API reference, Event `note`.
pub const EVENT_NOTE_BYTES: usize = 1024;

/// How long a cache of Nodes may take to show that it is as new as an answer of the API server. Ours.
pub const CACHE_PROOF: SignedDuration = SignedDuration::from_millis(500);

/// Most bytes that are hashed for the key of an encrypted user name. The Go operator asks for 64 KiB.
/// Ours.
pub const USERNAME_KEY_WORK_BYTES: usize = 1 << 20;

/// Bytes and nodes that aliases may add to the YAML of one file. Ours.
pub const YAML_ALIAS_BYTES: usize = 256 * 1024;

/// Nodes that aliases may repeat in one YAML document. Ours.
pub const YAML_ALIAS_NODES: usize = 10_000;

/// For so long after its last renewal others respect the Lease of a leader. This and the next two
/// let an API server be away for a minute. Source: OpenShift's conventions for operators.
pub const LEASE: SignedDuration = SignedDuration::from_secs(137);

/// A leader that could not renew its Lease for so long does not lead any more.
pub const LEASE_RENEW_DEADLINE: SignedDuration = SignedDuration::from_secs(107);

/// Pause between two attempts to renew a Lease, or to get it.
pub const LEASE_RETRY: SignedDuration = SignedDuration::from_secs(26);

/// Longest time to give a Lease back, and before that to let a renewal end that is on its way: a Pod
/// that is told to stop has little time. Ours.
pub const LEASE_RELEASE: SignedDuration = SignedDuration::from_secs(2);

/// Longest time for the headers of a request for metrics or health. Ours.
pub const HTTP_HEADERS: SignedDuration = SignedDuration::from_secs(5);

/// Longest time for a request for metrics or health, from the connection to the end of the answer.
pub const HTTP_REQUEST: SignedDuration = SignedDuration::from_secs(10);

/// Most connections for metrics and health at the same time. Ours.
pub const HTTP_CONNECTIONS: usize = 64;

/// How long requests for metrics or health may take when the process is to end. Ours.
pub const HTTP_END: SignedDuration = SignedDuration::from_secs(1);

/// How often the operator's own objects are looked at in the API server itself, whatever the watches
/// say. Ours.
pub const OWNED_RESYNC: SignedDuration = SignedDuration::from_mins(10);

/// Longest name of an image, with its registry and without tag and digest. Source: the reference
/// grammar of the Distribution project.
pub const IMAGE_NAME_BYTES: usize = 255;

/// Longest tag of an image. Source: the OCI distribution specification, "Pulling manifests".
pub const IMAGE_TAG_BYTES: usize = 128;

/// Longest path of a file that every program on Windows opens. Source: Microsoft, "Maximum path length
/// limitation", less the end mark.
pub const WINDOWS_PATH_CHARACTERS: usize = 259;

/// Most bytes of a text from an object that a finding repeats. Ours.
pub const FINDING_TEXT_BYTES: usize = 120;
