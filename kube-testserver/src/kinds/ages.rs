//! Ages, as kubectl shows them.

use jiff::Timestamp;
use serde_json::Value;

/// A duration such as `5s`, `3m2s`, `4h5m`, `2d3h`, `400d`, as kubectl prints ages. Source:
/// `k8s.io/apimachinery/pkg/util/duration` (`HumanDuration`).
pub(super) fn human(seconds: i64) -> String {
    const HOUR: i64 = 60 * 60;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let pair = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{big_unit}")
        } else {
            format!("{big}{big_unit}{small}{small_unit}")
        }
    };
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds / 60, "m", seconds % 60, "s"),
        600..10_800 => format!("{}m", seconds / 60),
        10_800..28_800 => pair(seconds / HOUR, "h", seconds / 60 % 60, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds / DAY, "d", seconds / HOUR % 24, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds / YEAR, "y", seconds / DAY % 365, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The age of a time; `<unknown>` without a time.
pub(crate) fn age_of(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => human(now.as_second() - then.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// The age of an object.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    age_of(crate::meta::text(object, "creationTimestamp"), now).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_like_kubectls() {
        let cases = [
            (5, "5s"),
            (182, "3m2s"),
            (720, "12m"),
            (3 * 3600 + 300, "3h5m"),
            (9 * 3600, "9h"),
            (3 * 86400, "3d"),
            (100 * 86400, "100d"),
            (800 * 86400, "2y70d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human(seconds), expected);
        }
    }
}
