//! Errors of a services ConfigMap.

use wmco_core::text::printable;

use crate::jsonpath::NodePathError;
use crate::windows::BadServiceName;

/// Why a services ConfigMap is refused. The message holds no value of a variable and no terminal control character.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Windows does not accept a name.
    #[error("fix field `{field}` of service `{}`", printable(.service))]
    BadName {
        /// The service's name in the ConfigMap.
        service: String,
        /// `name` or `dependencies`.
        field: &'static str,
        /// The cause.
        source: BadServiceName,
    },
    /// The path to a value of the Node cannot be parsed.
    #[error(
        "fix field `nodeObjectJsonPath` of placeholder {} of service `{}`",
        printable(.placeholder),
        printable(.service)
    )]
    BadPath {
        /// The service.
        service: String,
        /// The placeholder.
        placeholder: String,
        /// The cause.
        source: NodePathError,
    },
    /// A placeholder is empty, is declared twice or occurs only within other words.
    #[error(
        "placeholder `{}` in field `{field}` of service `{}` {problem}",
        printable(.placeholder),
        printable(.service)
    )]
    BadPlaceholder {
        /// The service.
        service: String,
        /// `nodeVariablesInCommand`, `variableName` or `NodeArgs`.
        field: &'static str,
        /// The placeholder.
        placeholder: String,
        /// The problem and its remedy.
        problem: &'static str,
    },
    /// Windows does not accept the name of a variable.
    #[error("`{}` in `{key}` is no name of a variable, use text without `=`", printable(.name))]
    BadVariable {
        /// The key of the ConfigMap.
        key: &'static str,
        /// The name.
        name: String,
    },
    /// A bootstrap service depends on a service that starts later.
    #[error(
        "bootstrap service `{}` depends on `{}`, which starts only when there is a \
         node; make that a bootstrap service, too, or drop the dependency",
        printable(.service),
        printable(.dependency)
    )]
    BootstrapDependency {
        /// The bootstrap service.
        service: String,
        /// The dependency.
        dependency: String,
    },
    /// A bootstrap service needs a value of the Node.
    #[error(
        "bootstrap service `{}` asks for values of the node in field `{field}`, but it starts \
         before there is one; drop them",
        printable(.service)
    )]
    BootstrapVariable {
        /// The service.
        service: String,
        /// `nodeVariablesInCommand` or `NodeArgs`.
        field: &'static str,
    },
    /// Each service in `path` depends on the next, and the last on the first.
    #[error(
        "services need each other in a circle, drop one dependency: {}",
        printable(&.path.join(" -> "))
    )]
    Cycle {
        /// The cycle; its first member is repeated at the end.
        path: Vec<String>,
    },
    /// Two services have the same name.
    #[error("service `{}` is there twice (names ignore case), drop one", printable(.service))]
    DuplicateService {
        /// The name.
        service: String,
    },
    /// Two variables have the same name.
    #[error("variable `{}` is there twice (names ignore case), drop one", printable(.name))]
    DuplicateVariable {
        /// The name.
        name: String,
    },
    /// A service has no command, or a pre-script has no text.
    #[error("field `{field}` of service `{}` is empty, fill it", printable(.service))]
    Empty {
        /// The service.
        service: String,
        /// `path` or `powershellPreScripts.path`.
        field: &'static str,
    },
    /// A value cannot be parsed.
    #[error("fix the JSON at `{}`", printable(.at))]
    Json {
        /// Its place, for example `services[3].priority`.
        at: String,
        /// The parser's error, with its position.
        source: serde_json::Error,
    },
    /// A required key is missing.
    #[error("add the key `{key}`; `[]` will do")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// The priority of a service is not above those of all bootstrap services.
    #[error(
        "priority {priority} of service `{}` is not above that of bootstrap service \
         `{}`, raise it",
        printable(.service),
        printable(.bootstrap)
    )]
    Priority {
        /// The service, no bootstrap service.
        service: String,
        /// Its priority.
        priority: u64,
        /// A bootstrap service with the same or a higher number.
        bootstrap: String,
    },
    /// A placeholder of the operator's own services is not declared, so it would stay in a command.
    #[error(
        "nothing fills {placeholder} in field `{field}` of service `{}`, declare it or write the \
         value",
        printable(.service)
    )]
    UndeclaredPlaceholder {
        /// The service.
        service: String,
        /// `path` or `powershellPreScripts.path`.
        field: &'static str,
        /// The placeholder.
        placeholder: &'static str,
    },
    /// A key is unknown.
    #[error("drop the key `{}`, it means nothing here", printable(.key))]
    UnknownKey {
        /// The key.
        key: String,
    },
}

/// A reason to refuse the ConfigMap.
#[derive(Debug)]
pub struct Problem {
    /// The place: a key of the data, and within its JSON a path, for example `services[2].dependencies[0]`, with
    /// indices from 0 as in the JSON.
    pub at: String,
    /// The problem and its remedy.
    pub error: ManifestError,
}
