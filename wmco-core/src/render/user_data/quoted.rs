//! Quoted texts of a PowerShell script.

/// Characters that PowerShell accepts as a single quotation mark.
const SINGLE: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];

/// Characters that PowerShell accepts as a double quotation mark.
const DOUBLE: [char; 4] = ['"', '\u{201c}', '\u{201d}', '\u{201e}'];

/// The values of all quoted texts and here-strings in `script`, in order; comments are ignored.
///
/// Variables in double quotes are not expanded, and a quotation mark inside of `$( )` ends the text: enough to find
/// plain texts. An unterminated text is ignored together with everything after it: PowerShell runs no such script.
///
/// Source: the language specification of Windows PowerShell, section 2.2.3 and 2.3.5.2.
pub(super) fn quoted(script: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = script;
    let mut in_word = false;
    loop {
        let mut chars = rest.chars();
        let Some(first) = chars.next() else { return texts };
        let after = chars.as_str();
        // A comment begins only at the start of a word: `a#b` is one word.
        let began = !std::mem::replace(&mut in_word, is_of_word(first));
        let read = match first {
            '#' if began => Some((None, after.trim_start_matches(|c| !is_line_end(c)))),
            '<' if began && after.starts_with('#') => {
                chars.next();
                chars.as_str().split_once("#>").map(|(_, behind)| (None, behind))
            }
            '`' => {
                chars.next();
                Some((None, chars.as_str()))
            }
            '@' if here_string_begins(after).is_some() => here_string(after),
            _ if SINGLE.contains(&first) => text(after, &SINGLE),
            _ if DOUBLE.contains(&first) => text(after, &DOUBLE),
            _ => Some((None, after)),
        };
        let Some((value, behind)) = read else { return texts };
        texts.extend(value);
        rest = behind;
    }
}

/// The value of a text, and the rest of the script.
type Read<'a> = Option<(Option<String>, &'a str)>;

/// Reads a text up to the next of its `quotes`; a doubled quotation mark stands for a single one.
fn text<'a>(start: &'a str, quotes: &[char]) -> Read<'a> {
    let mut value = String::new();
    let mut chars = start.chars();
    loop {
        match chars.next()? {
            '`' if quotes == DOUBLE => value.push(escaped(chars.next()?)),
            quote if quotes.contains(&quote) => {
                let behind = chars.as_str();
                match chars.next() {
                    Some(second) if quotes.contains(&second) => value.push(second),
                    _ => return Some((Some(value), behind)),
                }
            }
            plain => value.push(plain),
        }
    }
}

/// The quotation marks of the here-string that begins after an `@`, and its first line.
fn here_string_begins(after: &str) -> Option<(&'static [char], &str)> {
    let mut chars = after.chars();
    let first = chars.next()?;
    let quotes: &[char] = [SINGLE.as_slice(), DOUBLE.as_slice()]
        .into_iter()
        .find(|quotes| quotes.contains(&first))?;
    let line = chars.as_str().trim_start_matches([' ', '\t']);
    let first_line = line.strip_prefix("\r\n").or_else(|| line.strip_prefix(is_line_end))?;
    Some((quotes, first_line))
}

/// Reads a here-string up to the line that begins with its quotation mark and `@`.
fn here_string(after: &str) -> Read<'_> {
    let (quotes, body) = here_string_begins(after)?;
    let ends = |line: &str| line.strip_prefix(quotes).is_some_and(|rest| rest.starts_with('@'));
    let mut length = 0;
    for line in body.split_inclusive(is_line_end) {
        if ends(line) {
            let (value, end) = body.split_at_checked(length)?;
            let value = if quotes == DOUBLE { unescaped(value) } else { value.to_owned() };
            return Some((Some(value), end.strip_prefix(quotes)?.strip_prefix('@')?));
        }
        length += line.len();
    }
    None
}

fn unescaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            '`' => value.extend(chars.next().map(escaped)),
            plain => value.push(plain),
        }
    }
    value
}

/// The character that a backtick and `c` mean in double quotes.
const fn escaped(c: char) -> char {
    match c {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        other => other,
    }
}

const fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || r"_-.\/:".contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::quoted;

    #[track_caller]
    fn check(script: &str, texts: &[&str]) {
        assert_eq!(quoted(script), texts, "{script}");
    }

    #[test]
    fn single_quotes_are_taken_as_they_are() {
        check("a 'b `n $c \"d' e 'f''g' ''", &["b `n $c \"d", "f'g", ""]);
    }

    #[test]
    fn double_quotes_know_escapes() {
        check("\"a`nb `\" c\"\" 'd' $e`$\"", &["a\nb \" c\" 'd' $e$"]);
        check("\"a\nb\"", &["a\nb"]);
    }

    #[test]
    fn typographic_quotes_are_quotes() {
        check("\u{2018}a\u{2019} \u{201c}b\u{201d}", &["a", "b"]);
    }

    #[test]
    fn here_strings_end_at_the_begin_of_a_line_only() {
        check("@'\na '@ b\n'c'\n'@ 'd'", &["a '@ b\n'c'\n", "d"]);
        check("@\" \t\r\na`tb \"@\r\n\"@.Trim() + \"c\"", &["a\tb \"@\r\n", "c"]);
        // An array, not a here-string.
        check("@('a', @'b')", &["a", "b"]);
    }

    #[test]
    fn comments_are_passed_over() {
        check("# it's 'a'\n'b' # \"c\"\r'd'#'e'", &["b", "d"]);
        check("<# it's\n'a' #> 'b' <#'c'", &["b"]);
        check("<#>'a'#>'b'", &["b"]);
        check("a#'b' 'c#d'", &["b", "c#d"]);
        check("$x=#'a'\n'b'", &["b"]);
    }

    #[test]
    fn a_backtick_takes_the_meaning_of_a_quote() {
        check("a `' 'b' `\" `# 'c'", &["b", "c"]);
    }

    #[test]
    fn a_text_without_an_end_is_none() {
        for script in
            ["'a", "'a''", "\"a`\"", "\"a`", "@'\na", "@\"\na\n \"@", "`", "@", "@'", "<#"]
        {
            check(script, &[]);
            check(&format!("'b' {script}"), &["b"]);
        }
    }

    /// A piece of a script, and the value of the text in it.
    fn any_piece() -> impl Strategy<Value = (String, Option<String>)> {
        let value = "[a#<>$ '\"`\n\u{2019}\u{201d}]{0,9}";
        let doubled = |value: &str, quotes: &[char]| -> String {
            let twice = |c| if quotes.contains(&c) { vec![c, c] } else { vec![c] };
            value.chars().flat_map(twice).collect()
        };
        prop_oneof![
            value.prop_map(move |value| {
                let quoted = doubled(&value, &['\'', '\u{2019}']);
                (format!("'{quoted}'"), Some(value))
            }),
            value.prop_map(move |value| {
                let quoted = value.replace('`', "``").replace('\n', "`n");
                let quoted = doubled(&quoted, &['"', '\u{201d}']);
                (format!("\"{quoted}\""), Some(value))
            }),
            value.prop_map(|value| (format!("@'\n{value}\n'@"), Some(format!("{value}\n")))),
            value.prop_map(|value| {
                (format!("@\"\n{}\n\"@", value.replace('`', "``")), Some(format!("{value}\n")))
            }),
            value.prop_map(|value| (format!("#{}", value.replace('\n', " ")), None)),
            value.prop_map(|value| (format!("<#{}#>", value.replace("#>", "")), None)),
            "[a#b$=(){}1,;|-]{1,9}"
                .prop_map(|word| (format!("a{}", word.replace('#', "a#")), None)),
        ]
    }

    proptest! {
        #[test]
        fn what_was_quoted_is_read(pieces in vec(any_piece(), 0..9)) {
            let (script, texts): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
            let texts: Vec<_> = texts.into_iter().flatten().collect();
            prop_assert_eq!(quoted(&script.join("\n")), texts);
        }
    }
}
