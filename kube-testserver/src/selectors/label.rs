//! Label selectors: equality, sets, existence, numeric comparison.

use std::str::FromStr;

use serde_json::Value;

use crate::names::{label_value, qualified_name};

/// A label selector; all requirements must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Operator {
    DoesNotExist,
    Exists,
    Greater,
    In,
    Less,
    NotIn,
}

impl LabelSelector {
    /// Whether these labels (`metadata.labels`) match all requirements.
    pub(crate) fn matches(&self, labels: Option<&Value>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether the selector has no requirements.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Requirement {
    fn matches(&self, labels: Option<&Value>) -> bool {
        let value = labels.and_then(|labels| labels.get(&self.key)).and_then(Value::as_str);
        let listed = |value: &str| self.values.iter().any(|own| own == value);
        let compare = |holds: fn(i64, i64) -> bool| {
            let limit = self.values.first().and_then(|text| text.parse().ok());
            let value = value.and_then(|text| text.parse().ok());
            value.zip(limit).is_some_and(|(value, limit)| holds(value, limit))
        };
        match self.operator {
            Operator::DoesNotExist => value.is_none(),
            Operator::Exists => value.is_some(),
            Operator::Greater => compare(|value, limit| value > limit),
            Operator::In => value.is_some_and(listed),
            Operator::Less => compare(|value, limit| value < limit),
            Operator::NotIn => !value.is_some_and(listed),
        }
    }
}

/// Tokens of a selector's text.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Token {
    End,
    Sign(&'static str),
    Word(String),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::End => "",
            Self::Sign(sign) => sign,
            Self::Word(word) => word,
        }
    }
}

const SIGNS: [&str; 9] = ["==", "!=", "!", "=", "(", ")", ",", ">", "<"];

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = rest.trim_start_matches(|_| false).get(sign.len()..).unwrap_or("");
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "=!(),><".contains(c));
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    tokens
}

struct Parser {
    tokens: std::vec::IntoIter<Token>,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.as_slice().first().cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        self.tokens.next().unwrap_or(Token::End)
    }

    fn parse(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(requirements),
                Token::Word(_) | Token::Sign("!") => {}
                Token::Sign(other) => {
                    return Err(format!(
                        "found '{other}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            let requirement = self.requirement();
            requirements
                .push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Sign(",") => match self.peek() {
                    Token::Word(_) | Token::Sign("!") => {}
                    other => {
                        let found = other.text();
                        return Err(format!("found '{found}', expected: identifier after ','"));
                    }
                },
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',' or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek() == Token::Sign("!");
        if negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        let wrong = qualified_name(&key);
        if !wrong.is_empty() {
            // Go prints the empty path of a key like this.
            return Err(format!("<nil>: Invalid value: {key:?}: {}", wrong.join("; ")));
        }
        let ends = matches!(self.peek(), Token::End | Token::Sign(","));
        if negated || ends {
            let operator = if negated { Operator::DoesNotExist } else { Operator::Exists };
            return Ok(Requirement { key, operator, values: Vec::new() });
        }
        let operator = self.next();
        let (operator, is_set) = match &operator {
            Token::Word(word) if word == "in" => (Operator::In, true),
            Token::Word(word) if word == "notin" => (Operator::NotIn, true),
            Token::Sign("=" | "==") => (Operator::In, false),
            Token::Sign("!=") => (Operator::NotIn, false),
            Token::Sign(">") => (Operator::Greater, false),
            Token::Sign("<") => (Operator::Less, false),
            other => {
                let found = other.text();
                return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        let values = if is_set { self.set()? } else { vec![self.single()?] };
        let numeric = matches!(operator, Operator::Greater | Operator::Less);
        if numeric && values.iter().any(|value| value.parse::<i64>().is_err()) {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            return Err(format!("values[0]: Invalid value: {:?}: {why}", values.join(",")));
        }
        for (index, value) in values.iter().enumerate() {
            let wrong = label_value(value);
            if !wrong.is_empty() {
                let wrong = wrong.join("; ");
                return Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {wrong}"));
            }
        }
        Ok(Requirement { key, operator, values })
    }

    fn single(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Sign(",") => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            Token::Sign(other) => Err(format!("found '{other}', expected: identifier")),
        }
    }

    fn set(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != Token::Sign("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        if self.peek() == Token::Sign(")") {
            let why = "for 'in', 'notin' operators, values set can't be empty";
            return Err(format!("values: Invalid value: []: {why}"));
        }
        let mut values = Vec::new();
        let mut expects_value = true;
        loop {
            match self.next() {
                Token::Word(word) if expects_value => {
                    values.push(word);
                    expects_value = false;
                }
                Token::Sign(",") => {
                    if expects_value {
                        values.push(String::new());
                    }
                    expects_value = true;
                }
                Token::Sign(")") => {
                    if expects_value {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                other => {
                    let expected =
                        if expects_value { "',', ')' or identifier" } else { "',' or ')'" };
                    return Err(format!("found '{}', expected: {expected}", other.text()));
                }
            }
        }
    }
}

impl FromStr for LabelSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Parser { tokens: tokens(text).into_iter() }.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: [bool; 3]) {
        let selector: LabelSelector = selector.parse().unwrap();
        let given =
            [json!({"env": "prod", "n": "3"}), json!({"env": "dev", "n": "10"}), json!({"t": "y"})];
        assert_eq!(given.map(|labels| selector.matches(Some(&labels))), expected);
    }

    #[test]
    fn equality_matches_objects_without_the_label_only_when_negated() {
        check("env=prod", [true, false, false]);
        check("env!=prod", [false, true, true]);
        check("env notin (prod, dev)", [false, false, true]);
        check("env in (dev,prod),!t", [true, true, false]);
    }

    #[test]
    fn numbers_compare_as_numbers() {
        check("n>5", [false, true, false]);
        check("n < 5", [true, false, false]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["a b", "=x", "a in b", "a,,b", "a in (b", "-a", "a>x", "a in (b c)", "a in ()"]
        {
            assert!(text.parse::<LabelSelector>().is_err(), "{text}");
        }
    }
}
