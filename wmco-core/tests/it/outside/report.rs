//! A law of what an agent writes, or what stands in its place.

use wmco_core::protocol::{PROTOCOL, ReportLine, read_report};

/// A report ends with a probe of our protocol and says the same when it is written again; anything
/// else is an error of one line.
pub(crate) fn a_report_ends_with_a_probe(output: &str) {
    match read_report(output) {
        Ok(lines) => {
            let Some(ReportLine::Probed(probe)) = lines.last() else { panic!("{lines:?}") };
            assert_eq!(probe.protocol, PROTOCOL);
            let again: Vec<_> =
                lines.iter().map(|line| serde_json::to_string(line).expect("JSON")).collect();
            assert_eq!(read_report(&again.join("\n")).expect("it was a report"), lines);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error}"),
    }
}
