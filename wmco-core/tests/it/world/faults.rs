//! Where things go wrong: before and after every single effect.

/// Why an effect did not come about, or nobody heard that it did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stop {
    /// The operator died.
    Crash,
    /// The action failed.
    Fail,
}

/// Counts down to the next crash and to the next failure; and what is out of order until people see to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) crash_in: Option<u32>,
    pub(crate) fail_in: Option<u32>,
    /// Whether no kubelet reaches the API.
    pub(crate) kubelets_cut: bool,
}

impl Faults {
    /// Passed before and after each effect.
    pub(crate) fn pass(&mut self) -> Result<(), Stop> {
        if due(&mut self.crash_in) {
            return Err(Stop::Crash);
        }
        if due(&mut self.fail_in) {
            return Err(Stop::Fail);
        }
        Ok(())
    }
}

fn due(left: &mut Option<u32>) -> bool {
    match left {
        None => false,
        Some(0) => {
            *left = None;
            true
        }
        Some(n) => {
            *n -= 1;
            false
        }
    }
}
