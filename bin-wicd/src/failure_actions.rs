//! How the Service Control Manager keeps failure actions in a service's registry key.
//!
//! Windows answers questions about them itself; Wine does not, so there the value is both written and
//! read by us. Five little-endian numbers (reset period in seconds, two unused, count, offset), then a
//! kind and a delay in milliseconds for each action.
//!
//! Source: Windows documentation of `SERVICE_FAILURE_ACTIONSW` and `SC_ACTION`.

use wmco_services::windows::Recovery;

/// Name of the value.
pub const VALUE: &str = "FailureActions";

/// Name of the number beside it: whether a stop with an error code is a failure, too.
pub const FLAG: &str = "FailureActionsOnNonCrashFailures";

/// Kind of an action that restarts the service.
const RESTART: u32 = 1;

/// Numbers before the first action, and their bytes.
const HEAD: usize = 5;
const HEAD_BYTES: u32 = 20;

/// The value for these actions.
pub fn encode(recovery: &Recovery) -> Vec<u8> {
    let count = u32::try_from(recovery.restart_delays_ms.len()).unwrap_or(u32::MAX);
    let head = [recovery.reset_seconds, 0, 0, count, HEAD_BYTES];
    let actions = recovery.restart_delays_ms.iter().flat_map(|delay| [RESTART, *delay]);
    head.into_iter().chain(actions).flat_map(u32::to_le_bytes).collect()
}

/// The actions in a value; `None` when there are none, or some that are not ours.
pub fn decode(value: &[u8], on_error_exit: bool) -> Option<Recovery> {
    let (numbers, rest) = value.as_chunks::<4>();
    let numbers: Vec<u32> = numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let (head, actions) = numbers.split_at_checked(HEAD)?;
    let [reset_seconds, _, _, count, _] = *head else { return None };
    let (actions, odd) = actions.as_chunks::<2>();
    let whole = rest.is_empty() && odd.is_empty() && actions.len() == count as usize;
    let restarts = actions.iter().all(|[kind, _]| *kind == RESTART);
    (whole && restarts && count > 0).then(|| Recovery {
        restart_delays_ms: actions.iter().map(|[_, delay]| *delay).collect(),
        reset_seconds,
        on_error_exit,
    })
}

#[cfg(test)]
mod tests {
    use wmco_services::services;

    use super::*;

    #[test]
    fn ours_are_read_back_exactly() {
        let ours = services::recovery();
        assert_eq!(decode(&encode(&ours), true), Some(ours.clone()));
        assert_ne!(decode(&encode(&ours), false), Some(ours));
    }

    #[test]
    fn the_layout_is_that_of_windows() {
        let recovery = Recovery {
            restart_delays_ms: vec![60_000],
            reset_seconds: 86_400,
            on_error_exit: true,
        };
        // As `sc failure x reset= 86400 actions= restart/60000` leaves it.
        let bytes = [
            0x80, 0x51, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x14, 0, 0, 0, 1, 0, 0, 0,
            0x60, 0xea, 0, 0,
        ];
        assert_eq!(encode(&recovery), bytes);
    }

    #[test]
    fn what_is_not_ours_is_none() {
        let mut other = encode(&services::recovery());
        assert_eq!(decode(&[], true), None);
        assert_eq!(decode(&other[..19], true), None);
        assert_eq!(decode(&other[..24], true), None);
        other[HEAD * 4] = 2;
        assert_eq!(decode(&other, true), None);
    }
}
