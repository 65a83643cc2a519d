//! `wicd probe` and `wicd apply`: the agent's report, one line of JSON for each event.

use std::io::{self, Write};

use anyhow::Context as _;
use jiff::Timestamp;
use wmco_core::protocol::ReportLine;
use wmco_core::winpath::WindowsPath;
use wmco_services::agent::Agent;
use wmco_services::windows::Windows;

/// Describes the host.
///
/// # Errors
/// When a fact about the host cannot be learnt, or nobody reads the report.
pub fn probe(windows: &dyn Windows, version: &str, out: &mut dyn Write) -> anyhow::Result<bool> {
    let probe = Agent::new(windows, version, Timestamp::now()).probe()?;
    line(out, &ReportLine::Probed(Box::new(probe))).context("cannot write the report")?;
    Ok(true)
}

/// Carries out the plan at `plan`; tells whether every step was done.
///
/// A plan is carried out to its end even when nobody reads the report any more: the connection may
/// be gone, and half a plan helps nobody.
///
/// # Errors
/// When the host cannot be described at the end, or nobody read the report.
pub fn apply(
    windows: &dyn Windows,
    version: &str,
    plan: &WindowsPath,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let mut written = Ok(());
    let done = Agent::new(windows, version, Timestamp::now()).apply(plan, &mut |event| {
        if written.is_ok() {
            written = line(out, &event);
        }
    });
    let done = done?;
    written.context("cannot write the report")?;
    Ok(done)
}

/// Writes one line and flushes it, so that the reader sees it at once.
fn line(out: &mut dyn Write, event: &ReportLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(event)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use wmco_core::digest::Sha256;
    use wmco_core::names::host;
    use wmco_core::protocol::{Access, HostPlan, HostStep, PROTOCOL, read_report, staged_plan};
    use wmco_services::fake::FakeWindows;

    use super::*;

    /// A host on which the agent is in its place, and a plan that makes one folder.
    fn host_with_plan() -> (FakeWindows, WindowsPath) {
        let host = FakeWindows::new("winhost");
        host.put_file(&host::AGENT.parse().unwrap(), "MZ");
        let step = HostStep::EnsureDirectory {
            path: host::CNI.parse().unwrap(),
            access: Access::Inherited,
        };
        let plan = serde_json::to_vec(&HostPlan {
            protocol: PROTOCOL,
            vacant_since: None,
            steps: vec![step],
        })
        .unwrap();
        let path = staged_plan(Sha256::of(&plan));
        host.put_file(&path, plan);
        (host, path)
    }

    /// Counts lines that were there when it was asked to flush.
    #[derive(Default)]
    struct Flushed {
        text: String,
        flushes: usize,
    }

    impl Write for Flushed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.text.push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.flushes += 1;
            assert!(self.text.ends_with('\n'));
            Ok(())
        }
    }

    #[test]
    fn every_event_is_a_line_that_leaves_at_once() {
        let (host, plan) = host_with_plan();
        let mut out = Flushed::default();
        assert!(apply(&host, "1.2.3", &plan, &mut out).unwrap());
        let lines = read_report(&out.text).unwrap();
        assert_eq!((lines.len(), out.flushes), (3, 3));
        assert_eq!(lines[1], ReportLine::Done { step: 0, changed: true });
    }

    #[test]
    fn a_probe_names_the_version() {
        let (host, _) = host_with_plan();
        let mut out = Vec::new();
        assert!(probe(&host, "1.2.3", &mut out).unwrap());
        let lines = read_report(std::str::from_utf8(&out).unwrap()).unwrap();
        let [ReportLine::Probed(probe)] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!(probe.agent.version, "1.2.3");
    }

    #[test]
    fn a_plan_is_carried_out_although_nobody_reads() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        use wmco_services::windows::Files as _;
        let (host, plan) = host_with_plan();
        assert!(apply(&host, "1.2.3", &plan, &mut Gone).is_err());
        assert!(host.kind(&host::CNI.parse().unwrap()).unwrap().is_some());
    }

    #[test]
    fn a_plan_that_is_not_there_is_refused() {
        let (host, _) = host_with_plan();
        let mut out = Flushed::default();
        let missing = r"C:\k\staging\plan-x.json".parse().unwrap();
        assert!(!apply(&host, "1.2.3", &missing, &mut out).unwrap());
        assert!(matches!(read_report(&out.text).unwrap()[0], ReportLine::Refused { .. }));
    }
}
