//! Errors of invalid times, with the messages of Go's `time.Parse`.

use super::quoted;

/// RFC 3339 to the second, as Go writes the layout.
pub(crate) const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
/// RFC 3339 with six decimals.
pub(crate) const MICROSECONDS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// The error of a `text` that is no time in this layout, one of the constants above.
pub(crate) fn parse_error(text: &str, layout: &str) -> String {
    let why = |why: &str| format!("parsing time {}{why}", quoted(text));
    let missing = |rest: &str, element: &str| {
        let whole = format!("parsing time {} as {}", quoted(text), quoted(layout));
        format!("{whole}: cannot parse {} as {}", quoted(rest), quoted(element))
    };
    let mut rest = text;
    let elements = [
        ("2006", 4, None),
        ("-", 0, None),
        ("01", 2, Some((1, 12, "month"))),
        ("-", 0, None),
        ("02", 2, None),
        ("T", 0, None),
        ("15", 2, Some((0, 23, "hour"))),
        (":", 0, None),
        ("04", 2, Some((0, 59, "minute"))),
        (":", 0, None),
        ("05", 2, Some((0, 59, "second"))),
    ];
    for (element, digits, bounds) in elements {
        let taken = match digits {
            0 => rest.strip_prefix(element),
            _ => rest
                .get(..digits)
                .filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|part| rest.strip_prefix(part)),
        };
        let Some(after) = taken else { return missing(rest, element) };
        if let Some((least, most, name)) = bounds {
            let number = rest.get(..digits).and_then(|part| part.parse::<u8>().ok());
            if number.is_none_or(|number| number < least || number > most) {
                return why(&format!(": {name} out of range"));
            }
        }
        rest = after;
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = rest.strip_prefix(['.', ',']).map_or(0, digits);
    if layout == MICROSECONDS && fraction != 6 {
        // Go reads these digits by count: the rest belongs to the zone.
        if fraction < 6 {
            return missing(rest, ".000000");
        }
        return missing(rest.get(7..).unwrap_or(""), "Z07:00");
    }
    let rest = if fraction == 0 { rest } else { rest.get(fraction + 1..).unwrap_or("") };
    let after_offset = rest.strip_prefix(['+', '-']).and_then(|offset| offset.get(5..));
    match rest.strip_prefix('Z').or(after_offset) {
        Some("") => why(": day out of range"),
        Some(rest) => why(&format!(": extra text: {}", quoted(rest))),
        None => missing(rest, "Z07:00"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_those_of_go() {
        let as_seconds = |rest: &str| format!(r#" as "2006-01-02T15:04:05Z07:00": {rest}"#);
        for (text, why) in [
            ("yesterday", as_seconds(r#"cannot parse "yesterday" as "2006""#)),
            ("", as_seconds(r#"cannot parse "" as "2006""#)),
            ("2026-01-01", as_seconds(r#"cannot parse "" as "T""#)),
            ("2026-01-01 00:00:00Z", as_seconds(r#"cannot parse " 00:00:00Z" as "T""#)),
            ("2026-01-01T00:00:00", as_seconds(r#"cannot parse "" as "Z07:00""#)),
            ("2026-13-01T00:00:00Z", ": month out of range".to_owned()),
            ("2026-01-01T24:00:00Z", ": hour out of range".to_owned()),
            ("2026-02-30T00:00:00Z", ": day out of range".to_owned()),
            ("2026-01-01T00:00:00Zx", r#": extra text: "x""#.to_owned()),
        ] {
            assert_eq!(parse_error(text, SECONDS), format!("parsing time {text:?}{why}"));
        }
        assert_eq!(
            parse_error("2026-01-01T00:00:00Z", MICROSECONDS),
            r#"parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
        );
    }
}
