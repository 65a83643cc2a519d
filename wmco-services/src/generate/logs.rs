//! Settings for the rotation of service logs. Source: `docs/contract/services.md`, SVC60 to SVC62.

use std::fmt;

use wmco_core::units::{GoDuration, Quantity};

/// Variable with the size at which a log is rotated, a Kubernetes quantity.
const SIZE: &str = "SERVICES_LOG_FILE_SIZE";
/// Variable with the age at which a rotated log is removed, a duration such as `168h`.
const AGE: &str = "SERVICES_LOG_FILE_AGE";
/// Variable with the pause between two flushes to disk, a duration such as `5s`.
const FLUSH: &str = "SERVICES_LOG_FLUSH_INTERVAL";

/// Validated settings, in their original text.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LogSettings {
    size: Option<(String, Quantity)>,
    age: Option<String>,
    flush: Option<String>,
}

/// The invalid log settings.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct LogSettingsError(pub Vec<BadLogSetting>);

/// An invalid log setting.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("variable {name} {problem}")]
pub struct BadLogSetting {
    /// The variable.
    pub name: &'static str,
    /// The problem of its value and a valid form.
    pub problem: String,
}

impl LogSettings {
    /// The warning for [`Self::age_without_size`].
    pub const AGE_WITHOUT_SIZE: &'static str = "the log runner ignores an age of logs without SERVICES_LOG_FILE_SIZE; only the daemon removes old files";

    /// Reads the settings from the operator's environment. A variable that is unset, empty or blank is not configured.
    ///
    /// # Errors
    /// [`LogSettingsError`] with every invalid setting.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LogSettingsError> {
        let mut bad = Vec::new();
        let text =
            |name| variable(name).map(|text| text.trim().to_owned()).filter(|t| !t.is_empty());
        let size = text(SIZE).and_then(|text| match text.parse::<Quantity>() {
            Ok(quantity) => Some((text, quantity)),
            Err(problem) => {
                bad.push(BadLogSetting { name: SIZE, problem: problem.to_string() });
                None
            }
        });
        let mut duration = |name| {
            text(name).and_then(|text| match check_duration(&text) {
                Ok(()) => Some(text),
                Err(problem) => {
                    bad.push(BadLogSetting { name, problem });
                    None
                }
            })
        };
        let (age, flush) = (duration(AGE), duration(FLUSH));
        if bad.is_empty() { Ok(Self { size, age, flush }) } else { Err(LogSettingsError(bad)) }
    }

    /// Whether anything is configured.
    pub fn is_configured(&self) -> bool {
        *self != Self::default()
    }

    /// Whether an age is set without a size. The log runner then removes nothing, since it does so only when it rotates
    /// a log.
    pub fn age_without_size(&self) -> bool {
        self.age.is_some() && self.size.is_none()
    }

    /// Returns the configured settings, each with its flag of the log runner and its variable.
    fn configured(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        let size = self.size.as_ref().map(|(text, _)| text);
        let all = [
            ("-log-file-size", SIZE, size),
            ("-log-file-age", AGE, self.age.as_ref()),
            ("-flush-interval", FLUSH, self.flush.as_ref()),
        ];
        all.into_iter().filter_map(|(flag, name, text)| Some((flag, name, text?.as_str())))
    }

    /// Returns the flags of the log runner.
    pub(super) fn runner_flags(&self) -> Vec<String> {
        self.configured().map(|(flag, _, text)| format!("{flag}={text}")).collect()
    }

    /// Returns the size in units of 10^6 bytes, rounded up, for the daemon's `--log-file-max-size`.
    pub fn megabytes(&self) -> Option<u64> {
        self.size.as_ref().map(|(_, quantity)| quantity.megabytes())
    }
}

/// Prints the variables that are set, with their values, for the log.
impl fmt::Display for LogSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<String> =
            self.configured().map(|(_, name, text)| format!("{name}={text}")).collect();
        f.write_str(&set.join(" "))
    }
}

/// Checks a Go duration of zero or more.
fn check_duration(text: &str) -> Result<(), String> {
    if text.starts_with('-') {
        return Err("is negative, write a duration of 0s or more".to_owned());
    }
    text.parse::<GoDuration>().map(drop).map_err(|problem| problem.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &str) -> Result<LogSettings, String> {
        LogSettings::from_environment(|asked| (asked == name).then(|| value.to_owned()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_are_quantities() {
        assert_eq!(read(SIZE, "0.5Gi").unwrap().megabytes(), Some(537));
        assert_eq!(read(AGE, "5s").unwrap().megabytes(), None);
        for text in ["10MB", "-1M", "."] {
            assert!(read(SIZE, text).is_err_and(|error| error.contains(SIZE)), "{text}");
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        for text in ["5s", "0", "0s", "1.5h", "+2h", "1500\u{b5}s", "1h30m", ".5s", "1.s"] {
            assert!(read(AGE, text).is_ok(), "{text}");
        }
        for text in ["100", "-5s", "-0s", "10x", "7d", "m", "- 1s", "9999999h", "1..5s", "+", "1 h"]
        {
            assert!(read(FLUSH, text).is_err_and(|e| e.contains(FLUSH)), "{text}");
        }
    }

    #[test]
    fn all_wrong_settings_are_named() {
        let error = LogSettings::from_environment(|_| Some("x".to_owned())).unwrap_err();
        assert_eq!(error.0.len(), 3);
    }
}
