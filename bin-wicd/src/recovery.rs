//! Recovery actions in the form in which the Service Control Manager keeps them in the registry.
//!
//! Source: Windows documentation, `SERVICE_FAILURE_ACTIONS`, with offsets in the place of pointers.

use wmco_services::windows::Recovery;

/// Value of a service's key that holds the actions.
pub const ACTIONS: &str = "FailureActions";

/// Value that is 1 when a stop with an error code counts as a failure.
pub const ON_ERROR_EXIT: &str = "FailureActionsOnNonCrashFailures";

/// Numbers before the actions: time to reset, message, command, count, offset of the actions.
const HEAD: [u32; 5] = [0, 0, 0, 0, 20];

/// `SC_ACTION_RESTART`.
const RESTART: u32 = 1;

/// The value of [`ACTIONS`].
pub fn encode(recovery: &Recovery) -> Vec<u8> {
    let [_, message, command, _, offset] = HEAD;
    let count = u32::try_from(recovery.restart_delays_ms.len()).unwrap_or(u32::MAX);
    let head = [recovery.reset_seconds, message, command, count, offset];
    let actions = recovery.restart_delays_ms.iter().flat_map(|delay| [RESTART, *delay]);
    head.into_iter().chain(actions).flat_map(u32::to_le_bytes).collect()
}

/// What the values say; `None` for anything that [`encode`] does not make.
pub fn decode(actions: &[u8], on_error_exit: bool) -> Option<Recovery> {
    let (numbers, []) = actions.as_chunks::<4>() else { return None };
    let mut numbers = numbers.iter().copied().map(u32::from_le_bytes);
    let reset_seconds = numbers.next()?;
    let restart_delays_ms: Vec<u32> = numbers.skip(HEAD.len() - 1).skip(1).step_by(2).collect();
    let recovery = Recovery { restart_delays_ms, reset_seconds, on_error_exit };
    (!recovery.restart_delays_ms.is_empty() && encode(&recovery) == actions).then_some(recovery)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recovery() -> Recovery {
        Recovery { restart_delays_ms: vec![10_000, 258], reset_seconds: 300, on_error_exit: true }
    }

    #[test]
    fn the_form_is_that_of_windows() {
        // As `sc.exe failure x reset= 300 actions= restart/10000/restart/258` leaves it.
        let kept = [
            0x2c, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0x14, 0, 0, 0, 1, 0, 0, 0, 0x10,
            0x27, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0,
        ];
        assert_eq!(encode(&recovery()), kept);
        assert_eq!(decode(&kept, true), Some(recovery()));
    }

    #[test]
    fn anything_else_is_none_of_ours() {
        let kept = encode(&recovery());
        let mut runs_a_command = kept.clone();
        runs_a_command[20] = 3;
        let nothing = Recovery { restart_delays_ms: Vec::new(), ..recovery() };
        for other in [&kept[..35], &kept[..32], &runs_a_command, &encode(&nothing), &[]] {
            assert_eq!(decode(other, true), None, "{other:?}");
        }
    }
}
