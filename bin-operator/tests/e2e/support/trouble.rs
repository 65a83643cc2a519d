//! Why a story may have come no further: what the operator told people, and requests without a certificate.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use wmco_core::names::objects;

/// Most of a kind that are shown, newest first.
const MOST: usize = 10;

/// All of it in one text.
pub(crate) async fn told(client: &Client) -> String {
    let lists = (warnings(client).await, requests(client).await);
    let (Ok(warnings), Ok(requests)) = lists else {
        return "the API server does not answer any more".to_owned();
    };
    let shown = |what: &str, all: Vec<String>| match all.as_slice() {
        [] => format!("no {what}"),
        all => format!("{what}, newest first: {}", all.join(" | ")),
    };
    let warnings = shown("warnings of the operator", warnings);
    format!("{warnings}; {}", shown("requests without a certificate", requests))
}

async fn warnings(client: &Client) -> kube::Result<Vec<String>> {
    let mut warnings = Vec::new();
    for namespace in [objects::DEFAULT_NAMESPACE, "default"] {
        let events: Api<Event> = Api::namespaced(client.clone(), namespace);
        warnings.extend(events.list(&ListParams::default()).await?.into_iter().filter(is_warning));
    }
    warnings.sort_by(|a, b| b.event_time.cmp(&a.event_time));
    let texts = warnings.iter().take(MOST).map(|event| {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}: {}", text(&event.reason), text(&event.note))
    });
    Ok(texts.collect())
}

fn is_warning(event: &Event) -> bool {
    event.reporting_controller.as_deref() == Some(objects::OPERATOR)
        && event.type_.as_deref() == Some("Warning")
}

async fn requests(client: &Client) -> kube::Result<Vec<String>> {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let mut requests = requests.list(&ListParams::default()).await?.items;
    requests.retain(|it| it.status.as_ref().is_none_or(|status| status.certificate.is_none()));
    requests.sort_by_key(|request| std::cmp::Reverse(request.creation_timestamp()));
    let texts = requests.iter().take(MOST).map(|request| {
        let status = request.status.iter();
        let conditions = status.filter_map(|status| status.conditions.as_ref()).flatten();
        let conditions = conditions.map(|condition| {
            format!(" {} ({})", condition.type_, condition.message.as_deref().unwrap_or_default())
        });
        let conditions: String = conditions.collect();
        let conditions = if conditions.is_empty() { " pending".to_owned() } else { conditions };
        format!("{} for {}:{conditions}", request.name_any(), request.spec.signer_name)
    });
    Ok(texts.collect())
}
