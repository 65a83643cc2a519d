//! CEL expressions of policies.

use std::collections::HashMap;

use cel::{Context, Program, Value as Cel};
use serde_json::Value;

/// Functions of the evaluator besides operators and macros. Kubernetes' own libraries are missing.
const FUNCTIONS: [&str; 20] = [
    "all",
    "bool",
    "bytes",
    "contains",
    "double",
    "endsWith",
    "exists",
    "exists_one",
    "filter",
    "has",
    "int",
    "map",
    "matches",
    "max",
    "min",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];

/// Errors of an expression.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExpressionError {
    /// It does not parse.
    #[error("compilation failed: {0}")]
    Syntax(String),
    /// It calls a function of real clusters that is missing here.
    #[error("the function {0} of an expression")]
    Function(String),
}

/// Compiles an expression.
pub(super) fn compile(text: &str) -> Result<Program, ExpressionError> {
    let program =
        Program::compile(text).map_err(|error| ExpressionError::Syntax(error.to_string()))?;
    let references = program.references();
    let unknown = references.functions().into_iter().find(|name| {
        let is_word = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
        is_word && !name.starts_with('_') && !FUNCTIONS.contains(name)
    });
    if let Some(name) = unknown {
        return Err(ExpressionError::Function(name.to_owned()));
    }
    drop(references);
    Ok(program)
}

/// The names that expressions may use.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, Cel>);

impl Names {
    pub(super) fn set(&mut self, name: &str, value: &Value) {
        self.0.insert(name.to_owned(), of_json(value));
    }

    /// Evaluates the variables of a policy in order. A failed variable stays undefined, so that expressions with it
    /// fail.
    pub(super) fn set_variables(&mut self, variables: &[(String, String)]) {
        let mut known = HashMap::new();
        for (name, expression) in variables {
            if let Ok(value) = self.evaluate(expression) {
                known.insert(name.clone(), value);
                self.0.insert("variables".to_owned(), known.clone().into());
            }
        }
        self.0.insert("variables".to_owned(), known.into());
    }

    fn evaluate(&self, expression: &str) -> Result<Cel, String> {
        let program = compile(expression).map_err(|error| error.to_string())?;
        let mut context = Context::default();
        for (name, value) in &self.0 {
            context.add_variable_from_value(name.as_str(), value.clone());
        }
        program.execute(&context).map_err(|error| error.to_string())
    }

    /// Evaluates an expression to a boolean; otherwise returns the error.
    pub(super) fn holds(&self, expression: &str) -> Result<bool, String> {
        match self.evaluate(expression)? {
            Cel::Bool(is) => Ok(is),
            _ => Err("the expression is no boolean".to_owned()),
        }
    }

    /// Evaluates an expression to a text.
    pub(super) fn text(&self, expression: &str) -> Option<String> {
        match self.evaluate(expression) {
            Ok(Cel::String(text)) => Some(text.as_ref().clone()),
            _ => None,
        }
    }
}

fn of_json(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Value::String(text) => text.clone().into(),
        Value::Array(items) => items.iter().map(of_json).collect::<Vec<_>>().into(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), of_json(value)))
            .collect::<HashMap<_, _>>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expression: &str, expected: Result<bool, ()>) {
        let mut names = Names::default();
        names.set("object", &json!({"data": {"w": "1"}, "spec": {"replicas": 3, "on": true}}));
        names.set("oldObject", &Value::Null);
        let variables = [("n".to_owned(), "object.spec.replicas + 1".to_owned())];
        names.set_variables(&variables);
        assert_eq!(names.holds(expression).map_err(drop), expected);
    }

    #[test]
    fn members_and_macros() {
        check("!has(object.data) || !('w' in object.data)", Ok(false));
        check("has(object.spec.none)", Ok(false));
        check("object.data.all(key, key.startsWith('w'))", Ok(true));
    }

    #[test]
    fn numbers_are_integers() {
        check("object.spec.replicas == 3 && object.spec.replicas < 4", Ok(true));
        check("variables.n == 4", Ok(true));
    }

    #[test]
    fn absent_things() {
        check("oldObject == null", Ok(true));
        check("object.none.x == 1", Err(()));
        check("object.spec.replicas", Err(()));
    }

    #[test]
    fn expressions_are_checked_before_use() {
        assert!(matches!(compile("object.metadata.name =="), Err(ExpressionError::Syntax(_))));
        assert!(matches!(compile("quantity('1')"), Err(ExpressionError::Function(_))));
        assert!(compile("object.a.startsWith('b') && size(object.c) > 1 ? true : false").is_ok());
    }
}
