//! Files that stand in for agent binaries.

use serde::{Deserialize, Serialize};

/// First bytes of a stand-in. Any other file is no program for a simulated host.
const MAGIC: &[u8] = b"MZ simulated agent\n";

/// A file that a simulated host runs as its agent.
///
/// ```
/// use wmco_sim::host::{AgentFile, AgentNature};
///
/// let exe = AgentFile::new("1.2.3").nature(AgentNature::Garbage).size(4096).bytes();
/// assert_eq!(exe.len(), 4096);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentFile {
    head: Head,
    size: usize,
}

/// The behaviour of a stand-in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentNature {
    /// Behaves like the real agent.
    #[default]
    Real,
    /// Behaves like the real agent, but reports this protocol version.
    Protocol(u32),
    /// Writes an error to standard error and exits with this status.
    Failing(u32),
    /// Prints text that is no report and exits with 0.
    Garbage,
    /// Prints nothing and never exits.
    Hanging,
    /// Prints nothing and exits with 0.
    Silent,
    /// Prints this many bytes that are no report, in lines, and exits with 0.
    Talking(u64),
}

/// The content of a stand-in.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Head {
    pub(super) version: String,
    pub(super) nature: AgentNature,
}

impl AgentFile {
    /// Creates a stand-in of 64 KiB for the agent of `version`.
    pub fn new(version: impl Into<String>) -> Self {
        let head = Head { version: version.into(), nature: AgentNature::Real };
        Self { head, size: 64 * 1024 }
    }

    /// Sets its behaviour.
    #[must_use]
    pub fn nature(mut self, nature: AgentNature) -> Self {
        self.head.nature = nature;
        self
    }

    /// Sets its size in bytes; the identifying head is never truncated.
    #[must_use]
    pub const fn size(mut self, bytes: usize) -> Self {
        self.size = bytes;
        self
    }

    /// Returns the file's content. Equal settings give equal bytes, which are incompressible.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(serde_json::json!(self.head).to_string().into_bytes());
        bytes.push(b'\n');
        let seed = bytes.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
        });
        let missing = self.size.saturating_sub(bytes.len());
        bytes.extend(noise(seed).take(missing));
        bytes
    }
}

impl Head {
    /// Parses the output of [`AgentFile::bytes`]; `None` for any other file.
    pub(super) fn of(file: &[u8]) -> Option<Self> {
        let line = file.strip_prefix(MAGIC)?.split(|byte| *byte == b'\n').next()?;
        serde_json::from_slice(line).ok()
    }
}

/// Generates pseudo-random bytes (xorshift).
fn noise(seed: u64) -> impl Iterator<Item = u8> {
    std::iter::successors(Some(seed | 1), |state| {
        let state = state ^ (state << 13);
        let state = state ^ (state >> 7);
        Some(state ^ (state << 17))
    })
    .flat_map(u64::to_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for nature in [AgentNature::Real, AgentNature::Protocol(7), AgentNature::Silent] {
            let file = AgentFile::new("1.2.3-abc").nature(nature).bytes();
            assert_eq!(Head::of(&file), Some(Head { version: "1.2.3-abc".into(), nature }));
        }
    }

    #[test]
    fn another_program_is_no_agent() {
        assert_eq!(Head::of(b"MZ\x90\0"), None);
        assert_eq!(Head::of(b""), None);
        assert_eq!(Head::of(MAGIC), None);
    }

    #[test]
    fn a_stand_in_has_its_size_and_differs_by_version() {
        let file = |version| AgentFile::new(version).size(100_000).bytes();
        assert_eq!(file("1").len(), 100_000);
        assert_eq!(file("1"), file("1"));
        let same = file("1").iter().zip(file("2")).filter(|(a, b)| **a == *b).count();
        assert!(same < 1000, "{same} equal bytes of unrelated noise");
    }
}
