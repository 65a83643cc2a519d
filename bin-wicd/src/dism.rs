//! Output of `dism.exe`, asked for in English.

use wmco_core::protocol::FeatureState;

/// Exit codes of `dism.exe` that mean that a feature was switched on: at once, or with the next
/// restart. Source: Windows documentation, "System Error Codes".
pub const ENABLED_CODES: [i32; 2] = [0, 3010];

/// State of a feature in the output of `/Get-FeatureInfo`; `None` when it tells none.
///
/// ```
/// use bin_wicd::dism::feature_state;
/// use wmco_core::protocol::FeatureState;
///
/// let output = "Feature Name : Containers\r\nState : Enable Pending\r\n";
/// assert_eq!(feature_state(output), Some(FeatureState::Pending));
/// ```
pub fn feature_state(output: &str) -> Option<FeatureState> {
    let state = output.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "State").then(|| value.trim())
    })?;
    match state {
        "Enabled" => Some(FeatureState::Enabled),
        "Enable Pending" => Some(FeatureState::Pending),
        "Disabled" | "Disable Pending" | "Disabled with Payload Removed" => {
            Some(FeatureState::Disabled)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_told_apart() {
        let output = |state| {
            format!(
                "\r\nDeployment Image Servicing and Management tool\r\nVersion: 10.0.20348.1\r\n\r\n\
                     Feature Name : Containers\r\nRestart Required : Possible\r\nState : {state}\r\n"
            )
        };
        assert_eq!(feature_state(&output("Enabled")), Some(FeatureState::Enabled));
        assert_eq!(feature_state(&output("Disabled")), Some(FeatureState::Disabled));
        assert_eq!(feature_state(&output("Disable Pending")), Some(FeatureState::Disabled));
        assert_eq!(feature_state(&output("Odd")), None);
        assert_eq!(feature_state("Error: 0x800f080c"), None);
    }
}
