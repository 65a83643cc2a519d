//! Clients by user, and typed objects without HTTP.

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, CustomResource, CustomResourceExt as _};
use kube_testserver::{StartError, TestServer, User};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[tokio::test]
async fn a_client_is_the_user_it_was_made_for() {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1"}});
    let server = TestServer::builder().object(&node).start().await.unwrap();
    let admin: Api<Node> = Api::all(server.client().unwrap());
    assert_eq!(admin.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let eve: Api<Node> = Api::all(server.client_as(User::new("eve")).unwrap());
    let refused = eve.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    assert_eq!(server.requests().last().unwrap().user, "eve");
}

#[tokio::test]
async fn certificates_are_judged_with_each_request_by_a_clock_of_their_own() {
    /// Later than the end of a client certificate that the server makes.
    const MILLENNIA: i64 = 5_000 * 365 * 24 * 3_600;
    let server = TestServer::start().await.unwrap();
    let text = server.kubeconfig("admin", &["system:masters"]).unwrap();
    let (kubeconfig, options) =
        (Kubeconfig::from_yaml(&text).unwrap(), KubeConfigOptions::default());
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let nodes: Api<Node> = Api::all(Client::try_from(config).unwrap());
    nodes.list(&ListParams::default()).await.unwrap();
    server.move_certificate_clock(MILLENNIA);
    let refused = nodes.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 401));
    server.move_certificate_clock(0);
    nodes.list(&ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn typed_objects_come_back_as_they_are_stored() {
    let server = TestServer::start().await.unwrap();
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let stored = server.put(&map).unwrap();
    assert_eq!(server.get_namespaced::<ConfigMap>("default", "a").unwrap(), stored);
    assert_eq!(server.list::<ConfigMap>().unwrap(), [stored]);
    assert_eq!(server.get::<Node>("none").unwrap_err().code, 404);
}

#[derive(CustomResource, Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(group = "shop.example", version = "v1", kind = "Order", namespaced)]
struct OrderSpec {
    #[schemars(range(min = 1))]
    pieces: u32,
}

#[tokio::test]
async fn custom_resources_are_there_from_the_start() {
    let two = Order::new("two", OrderSpec { pieces: 2 });
    // The definition counts first, whatever the order of the calls.
    let server = TestServer::builder().object(&two).crd(Order::crd()).start().await.unwrap();
    let orders: Api<Order> = Api::default_namespaced(server.client().unwrap());
    assert_eq!(orders.get("two").await.unwrap().spec, two.spec);
}

#[tokio::test]
async fn an_object_that_is_refused_ends_the_start_with_its_name() {
    let none = Order::new("none", OrderSpec { pieces: 0 });
    let refused = TestServer::builder().crd(Order::crd()).object(&none).start().await;
    let Err(StartError::Object { object, source, .. }) = refused else { panic!("it started") };
    assert_eq!(object, "Order none");
    assert_eq!(source.code, 422, "{source}");
    let unknown = TestServer::builder().object(&none).start().await.unwrap_err();
    assert!(matches!(unknown, StartError::Object { .. }), "{unknown}");
}

/// A test waits until it sees a change, and then counts the requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_change_came_from_is_listed_when_the_change_is_seen() {
    let server = TestServer::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client().unwrap());
    let map = |number: usize| {
        let name = format!("map-{number}");
        ConfigMap {
            metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
            ..ConfigMap::default()
        }
    };
    let writer = tokio::spawn(async move {
        for number in 0..300 {
            maps.create(&PostParams::default(), &map(number)).await.unwrap();
        }
    });
    let mut seen = 0;
    while seen < 300 {
        seen = server
            .list_namespaced::<ConfigMap>("default")
            .unwrap()
            .iter()
            .filter(|map| map.metadata.name.as_ref().is_some_and(|name| name.starts_with("map-")))
            .count();
        let creations = server.requests().iter().filter(|request| request.verb == "create").count();
        assert!(creations >= seen, "{creations} listed, {seen} seen");
    }
    writer.await.unwrap();
    assert!(
        server.requests().iter().all(|request| request.verb != "create" || request.code == 201)
    );
}
