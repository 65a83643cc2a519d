//! Answers of the Host Networking Service (HNS).
//!
//! Source: Microsoft's `hcsshim`, package `internal/hns`, and the PowerShell module `hns.psm1`.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A network.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "PascalCase")]
pub struct Network {
    /// Its identifier.
    #[serde(rename = "ID")]
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// An endpoint on a network.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "PascalCase")]
pub struct Endpoint {
    /// Its identifier.
    #[serde(rename = "ID")]
    pub id: String,
    /// Identifier of its network.
    #[serde(default)]
    pub virtual_network: String,
}

/// Why an answer gives nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The service says no.
    #[error("the host networking service refused: {reason}")]
    Refused {
        /// Its reason.
        reason: String,
    },
    /// It is not in the known form.
    #[error("the answer of the host networking service cannot be read")]
    Unreadable(#[from] serde_json::Error),
}

/// What the service gives; nothing when the call has no output.
///
/// # Errors
/// [`AnswerError`] when the service says no, or something unknown.
pub fn answer<T: DeserializeOwned + Default>(text: &str) -> Result<T, AnswerError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Answer {
        success: bool,
        #[serde(default)]
        error: String,
        #[serde(default)]
        output: serde_json::Value,
    }
    let answer: Answer = serde_json::from_str(text)?;
    if !answer.success {
        return Err(AnswerError::Refused { reason: answer.error });
    }
    match answer.output {
        serde_json::Value::Null => Ok(T::default()),
        output => Ok(serde_json::from_value(output)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read() {
        let text = r#"{"Success": true, "Output": [
            {"ID": "A-1", "Name": "nat", "Type": "nat"}, {"ID": "A-2"}]}"#;
        let networks: Vec<Network> = answer(text).unwrap();
        assert_eq!(networks[0], Network { id: "A-1".to_owned(), name: "nat".to_owned() });
        assert_eq!(networks[1].name, "");
    }

    #[test]
    fn no_output_is_nothing() {
        assert!(answer::<Vec<Endpoint>>(r#"{"Success": true}"#).unwrap().is_empty());
    }

    #[test]
    fn a_refusal_says_why() {
        let refused = answer::<Vec<Network>>(r#"{"Success": false, "Error": "not found"}"#);
        assert!(refused.unwrap_err().to_string().ends_with("refused: not found"));
        assert!(answer::<Vec<Network>>("oops").is_err());
    }
}
