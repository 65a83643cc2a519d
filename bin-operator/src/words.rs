//! Errors as sentences for people: the one place for Events, log and command line.

use std::error::Error;

use kube::core::Status;
use wmco_core::limits;
use wmco_core::text::{self, printable};
use wmco_kubeconfig::PlugInError;

/// What went wrong, from the outside in. An answer of the API server is one sentence with its code and the next step.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut parts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<kube::Error>() {
            parts.push(of_api_server(error));
            break;
        }
        parts.push(error.to_string());
        next = error.source();
    }
    // A transparent error says what its source says.
    parts.dedup();
    let text = parts.join(": ");
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn of_api_server(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => answer(status),
        // The errors of kube itself repeat what the plug-in was given and has printed.
        kube::Error::Service(error) if error.is::<PlugInError>() => {
            format!("the operator has no credentials for the api server ({error})")
        }
        kube::Error::Auth(_) => {
            "the operator has no credentials for the api server, see its kubeconfig or its \
                                 service account"
                .to_owned()
        }
        kube::Error::HyperError(_) | kube::Error::Service(_) => {
            let cause = error.source().map(text::chain).unwrap_or_default();
            format!("the api server cannot be reached ({cause}), it is asked again")
        }
        other => format!("the api server's answer cannot be used ({})", text::chain(other)),
    }
}

/// What the API server said, once, its code, and what to do about it.
fn answer(status: &Status) -> String {
    let said = match status.message.trim_end_matches('.') {
        "" if status.reason.is_empty() => "no reason given",
        "" => status.reason.as_str(),
        message => message,
    };
    // Webhooks may say much, and Events are cut: the next step has to stay.
    let shown = text::cut(said, limits::ANSWER_BYTES);
    let more = if shown.len() < said.len() { " ..." } else { "" };
    format!("{shown}{more} (code {}){}", status.code, next_step(status.code, said))
}

fn next_step(code: u16, said: &str) -> &'static str {
    match code {
        400 | 403 | 422 if is_of_admission(said) => "; see the policy or webhook that says so",
        400 | 422 => {
            "; this is a mistake in the operator, or the cluster has another version of the kind"
        }
        401 => {
            "; log in again, or see whether the operator's service account and its token are there"
        }
        403 if said.contains("being terminated") => "; it is tried again when that is over",
        403 if said.contains("exceeded quota") => "; raise that quota",
        403 => "; apply the rights in the operator's deployment again, or ask for your own",
        404 => "; see whether it was deleted",
        409 => "; somebody else changed it meanwhile, so it is tried again",
        410 => "; it is read anew",
        413 => "; see what makes the object so large",
        429 | 500..=599 => "; it is tried again",
        _ => "",
    }
}

/// Whether a webhook or an admission policy said it.
fn is_of_admission(said: &str) -> bool {
    said.contains("admission webhook") || said.contains("ValidatingAdmissionPolicy")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the api server did not change the node")]
    struct Outer(#[source] kube::Error);

    fn told(code: u16, reason: &str, message: &str) -> String {
        let status = serde_json::json!({
            "status": "Failure", "code": code, "reason": reason, "message": message,
        });
        let status: Status = serde_json::from_value(status).unwrap();
        chain(&Outer(kube::Error::Api(status.boxed())))
    }

    /// Each kind of answer: what was said stands there once, and nothing of the form in which programs show it.
    #[test]
    fn each_answer_is_one_sentence_with_its_code_and_the_next_step() {
        let answers = [
            (400, "BadRequest", "admission webhook \"a.test\" denied the request: no"),
            (400, "BadRequest", "unknown field \"spec.x\""),
            (401, "Unauthorized", "Unauthorized"),
            (
                403,
                "Forbidden",
                "nodes \"win-1\" is forbidden: User \"wmco\" cannot patch resource \"nodes\"",
            ),
            (
                403,
                "Forbidden",
                "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no",
            ),
            (403, "Forbidden", "unable to create: namespace x because it is being terminated"),
            (403, "Forbidden", "secrets \"a\" is forbidden: exceeded quota: q"),
            (404, "NotFound", "nodes \"win-1\" not found"),
            (
                409,
                "Conflict",
                "the object has been modified; please apply your changes to the latest version",
            ),
            (410, "Expired", "too old resource version"),
            (413, "RequestEntityTooLarge", "limit is 3145728"),
            (422, "Invalid", "Node \"win-1\" is invalid: metadata.labels: Invalid value"),
            (429, "TooManyRequests", "Too many requests, please try again later."),
            (500, "InternalError", "etcdserver: request timed out"),
            (503, "ServiceUnavailable", ""),
            (504, "Timeout", "Timeout: request did not complete within requested timeout"),
            (418, "", ""),
        ];
        let told: Vec<String> =
            answers.iter().map(|(code, reason, message)| told(*code, reason, message)).collect();
        assert_snapshot!(told.join("\n"));
        for (text, (_, _, message)) in told.iter().zip(answers) {
            assert!(!text.contains("Status {") && !text.contains("Some("), "{text}");
            let said = message.trim_end_matches('.');
            assert!(said.is_empty() || text.matches(said).count() == 1, "{text}");
        }
    }

    #[test]
    fn the_next_step_stays_however_much_a_webhook_says() {
        let text = told(
            403,
            "Forbidden",
            &format!("admission webhook \"a\" denied: {}", "\u{e4}".repeat(9000)),
        );
        assert!(
            text.len() < 700 && text.ends_with("see the policy or webhook that says so"),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_of_the_api_server_stays() {
        let outer = std::io::Error::other(std::io::Error::other("inner"));
        assert_eq!(chain(&outer), "inner");
        let wrong = serde_json::from_str::<u8>("x").unwrap_err();
        let text = chain(&Outer(kube::Error::SerdeError(wrong)));
        assert!(
            text.starts_with(
                "the api server did not change the node: the api server's answer cannot be used ("
            ),
            "{text}"
        );
    }
}
