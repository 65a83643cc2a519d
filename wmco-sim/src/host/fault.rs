//! Faults of a simulated host.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A fault of a host. It stays in force until it is cleared.
///
/// The text form for command lines is a kind, and for some kinds `=` and a number.
///
/// ```
/// use wmco_sim::host::Fault;
///
/// let fault: Fault = "disk-full=1000000".parse()?;
/// assert_eq!(fault, Fault::DiskFull { after_bytes: 1_000_000 });
/// assert_eq!("slow".parse::<Fault>()?.to_string(), "slow=65536");
/// Ok::<(), wmco_sim::host::BadFault>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Fault {
    /// Agents write text that is no report and exit with 0.
    AgentGarbage,
    /// Agents start and do nothing while this lasts.
    AgentHangs,
    /// Connections are accepted, but nothing is answered any more, also on existing ones.
    BlackHole,
    /// New connections present another host key, as after a reinstallation.
    ChangedHostKey,
    /// The disk is full after this many more bytes.
    DiskFull {
        /// Free space, in bytes.
        after_bytes: u64,
    },
    /// Each connection ends after this many received bytes.
    DropConnection {
        /// Bytes on the wire, handshake included.
        after_bytes: u64,
    },
    /// Each connection ends after this many bytes are written to files on it.
    DropUpload {
        /// Bytes in SFTP writes.
        after_bytes: u64,
    },
    /// No key is accepted.
    RefuseAuthentication,
    /// The port is closed; existing connections continue.
    RefuseConnections,
    /// Everything sent to the host arrives slowly.
    Slow {
        /// Bytes per second and connection.
        bytes_per_second: u64,
    },
}

/// The text names no fault.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is no fault, write one of {}, the last four with =NUMBER if wanted", kinds())]
pub struct BadFault {
    text: String,
}

fn kinds() -> String {
    Fault::SAMPLES.map(Fault::kind).join(", ")
}

impl Fault {
    /// A fault of each kind, those with a number last and with the default number.
    pub const SAMPLES: [Self; 10] = [
        Self::AgentGarbage,
        Self::AgentHangs,
        Self::BlackHole,
        Self::ChangedHostKey,
        Self::RefuseAuthentication,
        Self::RefuseConnections,
        Self::DiskFull { after_bytes: 0 },
        Self::DropConnection { after_bytes: 1024 * 1024 },
        Self::DropUpload { after_bytes: 1024 * 1024 },
        Self::Slow { bytes_per_second: 64 * 1024 },
    ];

    /// Returns the stable name of the kind, for example `black-hole`.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::AgentGarbage => "agent-garbage",
            Self::AgentHangs => "agent-hangs",
            Self::BlackHole => "black-hole",
            Self::ChangedHostKey => "changed-host-key",
            Self::DiskFull { .. } => "disk-full",
            Self::DropConnection { .. } => "drop-connection",
            Self::DropUpload { .. } => "drop-upload",
            Self::RefuseAuthentication => "refuse-authentication",
            Self::RefuseConnections => "refuse-connections",
            Self::Slow { .. } => "slow",
        }
    }

    const fn number(self) -> Option<u64> {
        match self {
            Self::DiskFull { after_bytes: number }
            | Self::DropConnection { after_bytes: number }
            | Self::DropUpload { after_bytes: number }
            | Self::Slow { bytes_per_second: number } => Some(number),
            Self::AgentGarbage
            | Self::AgentHangs
            | Self::BlackHole
            | Self::ChangedHostKey
            | Self::RefuseAuthentication
            | Self::RefuseConnections => None,
        }
    }

    /// Returns the same kind with another number; `None` for kinds without one.
    const fn with_number(self, number: u64) -> Option<Self> {
        match self {
            Self::DiskFull { .. } => Some(Self::DiskFull { after_bytes: number }),
            Self::DropConnection { .. } => Some(Self::DropConnection { after_bytes: number }),
            Self::DropUpload { .. } => Some(Self::DropUpload { after_bytes: number }),
            Self::Slow { .. } => Some(Self::Slow { bytes_per_second: number }),
            Self::AgentGarbage
            | Self::AgentHangs
            | Self::BlackHole
            | Self::ChangedHostKey
            | Self::RefuseAuthentication
            | Self::RefuseConnections => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        self.number().map_or(Ok(()), |number| write!(f, "={number}"))
    }
}

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        let (kind, number) = match text.split_once('=') {
            Some((kind, number)) => (kind, Some(number)),
            None => (text, None),
        };
        let sample = Self::SAMPLES.into_iter().find(|fault| fault.kind() == kind);
        match (sample, number) {
            (Some(fault), None) => Some(fault),
            (Some(fault), Some(number)) => {
                number.parse().ok().and_then(|number| fault.with_number(number))
            }
            (None, _) => None,
        }
        .ok_or_else(|| BadFault { text: text.to_owned() })
    }
}

/// The host's network behaviour now: its faults, its latency, and whether it is up.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    faults: Vec<Fault>,
    /// Additional time of each round trip.
    pub(super) latency: Duration,
    /// Whether the machine is off, for example between shutdown and start of a restart.
    pub(super) down: bool,
    /// Whether a restart ends only once this is `false` again.
    pub(super) held_down: bool,
}

impl Conditions {
    /// Adds `fault`, replacing one of its kind.
    pub(super) fn set(&mut self, fault: Fault) {
        self.clear(fault);
        self.faults.push(fault);
    }

    /// Removes the fault of the kind of `fault`.
    pub(super) fn clear(&mut self, fault: Fault) {
        self.faults.retain(|known| known.kind() != fault.kind());
    }

    /// Removes every fault.
    pub(super) fn clear_all(&mut self) {
        self.faults.clear();
    }

    /// Returns the faults, in the order in which they were set.
    pub(super) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Whether the port is open.
    pub(super) fn listens(&self) -> bool {
        !self.down && !self.has(Fault::RefuseConnections)
    }

    /// Returns the bytes after which a connection ends.
    pub(super) fn connection_limit(&self) -> Option<u64> {
        self.faults.iter().find_map(|fault| {
            if let Fault::DropConnection { after_bytes } = fault {
                Some(*after_bytes)
            } else {
                None
            }
        })
    }

    /// Returns the bytes of file content after which a connection ends.
    pub(super) fn upload_limit(&self) -> Option<u64> {
        self.faults.iter().find_map(|fault| {
            if let Fault::DropUpload { after_bytes } = fault { Some(*after_bytes) } else { None }
        })
    }

    /// Returns the transmission time of `bytes`.
    pub(super) fn line_time(&self, bytes: usize) -> Duration {
        let rate = self.faults.iter().find_map(|fault| {
            if let Fault::Slow { bytes_per_second } = fault {
                Some(*bytes_per_second)
            } else {
                None
            }
        });
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        rate.map_or(Duration::ZERO, |rate| {
            Duration::from_micros(bytes.saturating_mul(1_000_000) / rate.max(1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_as_written() {
        for fault in Fault::SAMPLES {
            assert_eq!(fault.to_string().parse(), Ok(fault));
            assert_eq!(fault.kind().parse(), Ok(fault));
        }
    }

    #[test]
    fn a_number_where_none_belongs_is_refused() {
        for text in ["", "slow=", "slow=fast", "black-hole=1", "black hole", "Slow"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_fault_replaces_the_one_of_its_kind() {
        let mut conditions = Conditions::default();
        conditions.set(Fault::DropUpload { after_bytes: 1 });
        conditions.set(Fault::BlackHole);
        conditions.set(Fault::DropUpload { after_bytes: 2 });
        assert_eq!(conditions.upload_limit(), Some(2));
        conditions.clear(Fault::DropUpload { after_bytes: 9 });
        assert_eq!(conditions.faults(), [Fault::BlackHole]);
    }

    #[test]
    fn slow_is_bytes_per_second() {
        let mut conditions = Conditions::default();
        assert_eq!(conditions.line_time(1 << 20), Duration::ZERO);
        conditions.set(Fault::Slow { bytes_per_second: 1000 });
        assert_eq!(conditions.line_time(500), Duration::from_millis(500));
    }
}
