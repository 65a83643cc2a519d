//! Which instance types have ARM processors, on which Windows nodes do not run.

use serde_json::Value;

use super::platform::Platform;

/// Paths of instance types in provider specifications.
const INSTANCE_TYPES: [&str; 3] = ["/instanceType", "/machineType", "/vmSize"];

/// The first instance type of a provider specification that has ARM processors, with its path.
pub(super) fn arm(platform: Platform, provider: &Value) -> Option<(&'static str, &str)> {
    let types = INSTANCE_TYPES.iter().filter_map(|at| Some((*at, provider.pointer(at)?.as_str()?)));
    types.into_iter().find(|(_, name)| is_arm(platform, name))
}

/// Whether an instance type has ARM processors, as far as its name tells. Source: the naming conventions of AWS, Azure
/// and Google Cloud.
fn is_arm(platform: Platform, instance_type: &str) -> bool {
    let lower = instance_type.to_ascii_lowercase();
    match platform {
        // A `g` directly after the generation, as in `m6g.large` and `im4gn.xlarge`; the `g` of `g5` comes before.
        Platform::Aws => {
            let family = lower.split('.').next().unwrap_or_default();
            family == "a1" || after_number(family).starts_with('g')
        }
        // A `p` among the letters after the number of processors, as in `Standard_D4ps_v5`.
        Platform::Azure => {
            let size = lower.strip_prefix("standard_").unwrap_or(&lower);
            let family = size.split('_').next().unwrap_or_default();
            after_number(family).contains('p')
        }
        Platform::Gcp => {
            let family = lower.split('-').next().unwrap_or_default();
            ["a4x", "c4a", "n4a", "t2a"].contains(&family)
        }
        Platform::Nutanix | Platform::VSphere => false,
    }
}

/// What follows the first number.
fn after_number(text: &str) -> &str {
    let digit = |letter: char| letter.is_ascii_digit();
    text.trim_start_matches(|letter| !digit(letter)).trim_start_matches(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arm_is_known_by_the_name() {
        for (platform, arm, other) in [
            (
                Platform::Aws,
                &[
                    "m6g.large",
                    "t4g.medium",
                    "c7gn.xlarge",
                    "im4gn.large",
                    "is4gen.large",
                    "g5g.xlarge",
                    "A1.large",
                    "x2gd.large",
                ][..],
                &[
                    "m5a.large",
                    "g4dn.xlarge",
                    "g5.xlarge",
                    "m6i.metal",
                    "p4d.24xlarge",
                    "u-6tb1.metal",
                    "",
                ][..],
            ),
            (
                Platform::Azure,
                &[
                    "Standard_D4ps_v5",
                    "Standard_E8pds_v5",
                    "standard_b2pts_v2",
                    "Standard_D2plds_v6",
                ],
                &[
                    "Standard_D2s_v3",
                    "Standard_NP10s",
                    "Standard_DC4as_v5",
                    "Standard_E4-2s_v5",
                    "",
                ],
            ),
            (
                Platform::Gcp,
                &["t2a-standard-4", "c4a-standard-8"],
                &["n1-standard-4", "n2d-standard-2", "a2-highgpu-1g"],
            ),
            (Platform::VSphere, &[], &["m6g.large"]),
        ] {
            for name in arm {
                assert!(is_arm(platform, name), "{name}");
            }
            for name in other {
                assert!(!is_arm(platform, name), "{name}");
            }
        }
    }
}
