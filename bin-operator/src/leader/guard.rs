//! Lets nothing be written by a process that does not lead.

use kube::Client;
use kube::client::Body;
use tower::service_fn;

use super::Leadership;
use axum::http::Request;

/// A client like `client` that asks `leadership` right before each request that is not a read. So a
/// write that forgot to ask is refused all the same.
pub fn guarded(client: &Client, leadership: &Leadership) -> Client {
    let namespace = client.default_namespace().to_owned();
    let (client, leadership) = (client.clone(), leadership.clone());
    let service = service_fn(move |request: Request<Body>| {
        let (client, leadership) = (client.clone(), leadership.clone());
        async move {
            if !request.method().is_safe() {
                leadership.check()?;
            }
            Ok::<_, tower::BoxError>(client.send(request).await?)
        }
    });
    Client::new(service, namespace)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
    use kube::config::{Config, KubeConfigOptions, Kubeconfig};
    use kube_testserver::TestServer;
    use serde_json::json;
    use tokio::sync::watch;

    use super::super::Term;
    use super::*;
    use crate::clock::Moment;

    #[tokio::test]
    async fn who_does_not_lead_reads_and_writes_nothing() {
        let cluster = TestServer::start().await.unwrap();
        let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let (term, seen) = watch::channel(Term::Until(Moment::now() + Duration::from_secs(60)));
        let client = guarded(&Client::try_from(config).unwrap(), &Leadership(seen));
        let api: Api<Namespace> = Api::all(client);
        let made: Namespace = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
        api.create(&PostParams::default(), &made).await.unwrap();

        term.send_replace(Term::Until(Moment::now()));
        let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        let refused = [
            api.create(&PostParams::default(), &made).await.unwrap_err(),
            api.patch("a", &PatchParams::default(), &patch).await.unwrap_err(),
            api.replace("a", &PostParams::default(), &made).await.unwrap_err(),
            api.delete("a", &DeleteParams::default()).await.unwrap_err(),
        ];
        for error in refused {
            assert!(crate::chain(&error).contains("does not lead"), "{error}");
        }
        assert!(!api.list(&ListParams::default()).await.unwrap().items.is_empty());
        let writes = ["create", "patch", "update", "delete"];
        assert_eq!(writes.map(|verb| cluster.count(verb, "namespaces")), [1, 0, 0, 0]);
    }
}
