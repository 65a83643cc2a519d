//! Runs the real agent's code on the model.

use jiff::Timestamp;
use wmco_core::protocol::{PROTOCOL, ReportLine};
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;
use wmco_services::agent::{Agent, AgentError};
use wmco_services::fake::FakeWindows;

use super::agent_file::{AgentNature, Head};
use super::shell::Ended;

/// Standard error for unknown arguments, followed by the exit status.
const USAGE: &str = "usage: wicd probe | wicd apply PLAN\r\n";
const USAGE_CODE: u32 = 2;

/// Runs an agent with these arguments; passes each line of its output to `write`.
pub(super) fn run(
    host: &FakeWindows,
    head: &Head,
    arguments: &[String],
    mut write: impl FnMut(String),
) -> Ended {
    let now = Timestamp::now();
    host.set_now(now);
    let protocol = match head.nature {
        AgentNature::Protocol(protocol) => protocol,
        AgentNature::Real
        | AgentNature::Failing(_)
        | AgentNature::Garbage
        | AgentNature::Hanging
        | AgentNature::Silent
        | AgentNature::Talking(_) => PROTOCOL,
    };
    let mut report = |line: ReportLine| write(text(line, protocol));
    let agent = Agent::new(host, &head.version, now);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match *arguments.as_slice() {
        ["probe"] => probe(&agent, &mut report).map(|()| true),
        ["apply", plan] => match plan.parse::<WindowsPath>() {
            Ok(plan) if protocol == PROTOCOL => agent.apply(&plan, &mut report),
            Ok(_) => {
                let error = format!("the plan is not of protocol {protocol}, replace the agent");
                report(ReportLine::Refused { error });
                probe(&agent, &mut report).map(|()| false)
            }
            Err(_) => return usage(),
        },
        _ => return usage(),
    };
    match done {
        Ok(true) => Ended::default(),
        Ok(false) => Ended { code: 1, ..Ended::default() },
        Err(error) => {
            Ended { stderr: format!("{}\r\n", chain(&error)), code: 1, ..Ended::default() }
        }
    }
}

fn probe(agent: &Agent<'_>, report: &mut dyn FnMut(ReportLine)) -> Result<(), AgentError> {
    report(ReportLine::Probed(Box::new(agent.probe()?)));
    Ok(())
}

fn usage() -> Ended {
    Ended { stderr: USAGE.to_owned(), code: USAGE_CODE, ..Ended::default() }
}

/// Renders a report line of an agent with this `protocol` version.
fn text(mut line: ReportLine, protocol: u32) -> String {
    if let ReportLine::Probed(probe) = &mut line {
        probe.protocol = protocol;
    }
    serde_json::json!(line).to_string() + "\n"
}
