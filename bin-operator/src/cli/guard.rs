//! The option that holds back removals in masses, for the commands that know of it.

use std::str::FromStr;

use clap::Args;

/// What `--guard-removals` says.
#[derive(Args, Clone, Copy, Debug)]
pub struct GuardOption {
    /// Most removals of listed hosts at once that need no confirmation; `off`: any number
    #[arg(long, value_name = "N|off", default_value = "off")]
    guard_removals: Most,
}

/// A number, or none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Most(Option<usize>);

impl GuardOption {
    /// Most removals that need no confirmation; `None`: any number.
    pub const fn most(&self) -> Option<usize> {
        self.guard_removals.0
    }
}

impl FromStr for Most {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self(None));
        }
        text.parse().map(|most| Self(Some(most))).map_err(|_| "write a number or `off`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_off() {
        assert_eq!("off".parse(), Ok(Most(None)));
        assert_eq!("3".parse(), Ok(Most(Some(3))));
        assert_eq!("0".parse(), Ok(Most(Some(0))));
        for text in ["", "-1", "on", "OFF"] {
            assert!(text.parse::<Most>().is_err(), "{text}");
        }
    }
}
