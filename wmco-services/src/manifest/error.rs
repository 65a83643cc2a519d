//! Why a services ConfigMap was refused.

use crate::jsonpath::NodePathError;
use crate::windows::BadServiceName;

/// Why a services ConfigMap was refused. No value of a variable is ever in the message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// A name is not one that Windows takes.
    #[error("fix field `{field}` of service `{service}`")]
    BadName {
        /// The service, as it is called in the ConfigMap.
        service: String,
        /// `name` or `dependencies`.
        field: &'static str,
        /// What is wrong with it.
        source: BadServiceName,
    },
    /// A path to a value of the Node cannot be read.
    #[error("fix field `nodeObjectJsonPath` of placeholder {placeholder} of service `{service}`")]
    BadPath {
        /// The service.
        service: String,
        /// The placeholder.
        placeholder: String,
        /// What is wrong with it.
        source: NodePathError,
    },
    /// A placeholder is empty, is declared twice or never occurs.
    #[error("placeholder `{placeholder}` in field `{field}` of service `{service}` {problem}")]
    BadPlaceholder {
        /// The service.
        service: String,
        /// `nodeVariablesInCommand`, `variableName` or `NodeArgs`.
        field: &'static str,
        /// The placeholder.
        placeholder: String,
        /// What is wrong with it and what to do.
        problem: &'static str,
    },
    /// The name of a variable is not one that Windows takes.
    #[error("`{name}` in `{key}` is no name of a variable, use text without `=`")]
    BadVariable {
        /// The key of the ConfigMap.
        key: &'static str,
        /// The name.
        name: String,
    },
    /// A bootstrap service needs one that starts later.
    #[error(
        "bootstrap service `{service}` depends on `{dependency}`, which starts only when there is a \
         node; make that a bootstrap service, too, or drop the dependency"
    )]
    BootstrapDependency {
        /// The bootstrap service.
        service: String,
        /// The other one.
        dependency: String,
    },
    /// A bootstrap service asks for something of the Node.
    #[error(
        "bootstrap service `{service}` asks for values of the node in field `{field}`, but it starts \
         before there is one; drop them"
    )]
    BootstrapVariable {
        /// The service.
        service: String,
        /// `nodeVariablesInCommand` or `NodeArgs`.
        field: &'static str,
    },
    /// Each service in `path` depends on the next, and the last on the first.
    #[error("services need each other in a circle, drop one dependency: {}", .path.join(" -> "))]
    Cycle {
        /// The circle; its first member is named again at the end.
        path: Vec<String>,
    },
    /// Two services have one name.
    #[error("service `{service}` is there twice (names ignore case), drop one")]
    DuplicateService {
        /// The name.
        service: String,
    },
    /// Two variables have one name.
    #[error("variable `{name}` is there twice (names ignore case), drop one")]
    DuplicateVariable {
        /// The name.
        name: String,
    },
    /// A service has no command, or a pre-script no text.
    #[error("field `{field}` of service `{service}` is empty, fill it")]
    Empty {
        /// The service.
        service: String,
        /// `path` or `powershellPreScripts.path`.
        field: &'static str,
    },
    /// A value cannot be read.
    #[error("fix the JSON at `{at}`")]
    Json {
        /// Where it is, for example `services[3].priority`.
        at: String,
        /// What is wrong with it and where.
        source: serde_json::Error,
    },
    /// A key that must be there is not.
    #[error("add the key `{key}`; `[]` will do")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A service that runs later has a priority that is not after all bootstrap services.
    #[error(
        "priority {priority} of service `{service}` is not above that of bootstrap service \
         `{bootstrap}`, raise it"
    )]
    Priority {
        /// The service that is no bootstrap service.
        service: String,
        /// Its priority.
        priority: u64,
        /// A bootstrap service with the same or a higher number.
        bootstrap: String,
    },
    /// A placeholder of the operator's own services would stay in a command as it is.
    #[error(
        "nothing fills {placeholder} in field `{field}` of service `{service}` in, declare it or \
         write the value"
    )]
    UndeclaredPlaceholder {
        /// The service.
        service: String,
        /// `path` or `powershellPreScripts.path`.
        field: &'static str,
        /// The placeholder.
        placeholder: &'static str,
    },
    /// There is a key that means nothing.
    #[error("drop the key `{key}`, it means nothing here")]
    UnknownKey {
        /// The key.
        key: String,
    },
}

/// A reason to refuse the ConfigMap.
#[derive(Debug)]
pub struct Problem {
    /// Where it is: a key of the data, and for what is in its JSON a path, for example
    /// `services[2].dependencies[0]`. Counted from 0, as in the JSON.
    pub at: String,
    /// What is wrong and what to do.
    pub error: ManifestError,
}
