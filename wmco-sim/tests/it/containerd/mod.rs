//! Tests our files with a real containerd: compares its requests to registries with our explanation, and parses its own
//! configuration.
//!
//! The prediction uses only [`Registries::explain`] and the behaviour of a test's registries.

mod any;
mod behaviour;
mod cases;
mod config;
mod daemon;
mod image;
mod upstream;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use hyper::Method;
use serde_json::{Value, json};
use wmco_core::registries::{
    EndpointReason, ImageConfigFacts, MirrorSetFacts, Pull, PullRequest, PullSecret,
    PullSecretData, Registries, RegistryInputs, configure,
};
use wmco_core::secret::Secret;

use behaviour::{Answer, Behaviour};
use daemon::Containerd;
use image::Image;
use upstream::{Asked, Authority, TOKEN, Upstream};

/// A pull: the cluster's objects, the image, and the behaviour of the registries.
#[derive(Clone, Debug)]
struct Case {
    objects: Vec<Value>,
    /// May contain `DIGEST` for the digest of the registries' image, and `PORT` for a port of the host on which the
    /// registries answer, too.
    image: String,
    behaviour: Behaviour,
}

/// A closed port: requests to it cannot be observed.
const CLOSED: &str = "127.0.0.1:1";

/// Concurrent pulls.
const PULLS: usize = 6;

/// Builds the registries from these objects. A Secret is an object with `auths`.
fn registries(objects: &[Value]) -> Registries {
    let sets: Vec<_> = objects.iter().filter_map(MirrorSetFacts::of).collect();
    let config = objects.iter().find(|object| object["kind"] == "Image");
    let config = config.map(ImageConfigFacts::of).unwrap_or_default();
    let secret = objects.iter().find(|object| object.get("auths").is_some());
    let secret = secret.map_or("{}".into(), ToString::to_string);
    let pull_secret = PullSecret::read(PullSecretData::Text(secret.as_bytes()));
    configure(&RegistryInputs {
        mirror_sets: &sets,
        image_config: &config,
        pull_secret: &pull_secret,
        pause_image: None,
    })
}

/// Returns the requests that the registries should receive by the explanation in `pull`, and whether the pull succeeds.
fn predict(pull: &Pull, case: &Case, image: &Image) -> (Vec<Asked>, bool) {
    let mut asked = Vec::new();
    let mut ask = |method: Method, request: &PullRequest, url: String| {
        let (scheme, rest) = url.split_once("://").unwrap();
        let authority = rest.split('/').next().unwrap();
        let mut answer = case.behaviour.answer(scheme, authority);
        if answer == Answer::BadCertificate && (scheme == "http" || request.any_certificate) {
            answer = Answer::Image;
        }
        asked.push(if matches!(answer, Answer::Refused | Answer::BadCertificate) {
            Asked::Connection(format!("{scheme}://{authority}"))
        } else {
            let key = request.credentials.as_ref();
            let credentials = key.map(|key| credentials(&case.objects, key));
            Asked::Request(method, url, credentials)
        });
        answer
    };
    let resolved = pull.resolve.iter().any(|request| {
        let answer = ask(Method::HEAD, request, request.url.clone());
        matches!(answer, Answer::Image | Answer::NoContent)
    });
    let pulled = resolved
        && image.content().iter().all(|(folder, digest)| {
            pull.content.iter().any(|request| {
                let url = request.url.replace("/blobs/DIGEST", &format!("/{folder}/{digest}"));
                ask(Method::GET, request, url) == Answer::Image
            })
        });
    (asked, pulled)
}

/// Returns the header for an entry of the pull secret, whose key may have Docker's legacy form.
fn credentials(objects: &[Value], key: &str) -> String {
    let auth = |key: &str| objects.iter().find_map(|object| object["auths"][key]["auth"].as_str());
    format!("Basic {}", auth(key).or_else(|| auth(&format!("https://{key}/v1/"))).unwrap())
}

/// Pulls the image of `case`; returns the difference from the explanation, if any.
async fn check(
    containerd: &Containerd,
    authority: &Arc<Authority>,
    number: usize,
    case: &Case,
) -> Option<String> {
    let image = Arc::new(Image::new(number));
    let upstream =
        Upstream::start(Arc::clone(authority), Arc::clone(&image), case.behaviour.clone()).await;
    let name = case.image.replace("DIGEST", &image.manifest_digest());
    let name = name.replace("PORT", &upstream.address.port().to_string());
    let registries = registries(&case.objects);
    let pull = registries.explain(&name.parse().unwrap());
    let (mut expected, success) = predict(&pull, case, &image);
    expected.retain(|asked| *asked != Asked::Connection(format!("https://{CLOSED}")));
    let output = containerd.pull(&registries.files(), &pull.image, &upstream).await;
    let asked = upstream.asked();
    (asked != expected || output.status.success() != success).then(|| {
        let files: BTreeMap<_, _> = registries
            .files()
            .into_iter()
            .map(|(path, text)| (path, String::from_utf8_lossy(text.expose()).into_owned()))
            .collect();
        format!(
            "{case:#?}\n{name}\nexplained {expected:#?}\nasked {asked:#?}\nfiles {files:#?}\n{}{}\n",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        )
    })
}

/// Whether a mirror may serve the image of `case`.
fn has_usable_mirror(case: &Case) -> bool {
    let digest = format!("sha256:{}", "0".repeat(64));
    let image = case.image.replace("DIGEST", &digest);
    let pull = registries(&case.objects).explain(&image.parse().unwrap());
    let is_mirror = |because: &EndpointReason| {
        matches!(because, EndpointReason::Mirror { .. } | EndpointReason::InPlaceOfSource)
    };
    pull.content.iter().any(|request| is_mirror(&request.because))
}

async fn check_all(cases: Vec<Case>) {
    let authority = Arc::new(Authority::new());
    let containerd = Containerd::start(&authority).await;
    let checks =
        cases.iter().enumerate().map(|(number, case)| check(&containerd, &authority, number, case));
    let wrong: Vec<String> = futures::stream::iter(checks)
        .buffer_unordered(PULLS)
        .filter_map(std::future::ready)
        .collect()
        .await;
    let first = wrong.first().map_or("", String::as_str);
    assert!(wrong.is_empty(), "{} of {} are wrong, the first:\n{first}", wrong.len(), cases.len());
}

#[tokio::test]
async fn containerd_asks_what_is_explained_in_each_case() {
    let cases = cases::all();
    assert_eq!(cases.len(), 43);
    check_all(cases).await;
}

#[tokio::test]
async fn containerd_asks_what_is_explained_of_any_objects() {
    let cases = any::cases(200);
    let mirrored = cases.iter().filter(|case| has_usable_mirror(case)).count();
    assert!(mirrored * 2 >= cases.len(), "{mirrored} of {} pulls involve a mirror", cases.len());
    check_all(cases).await;
}

/// A mirror with credentials that asks for a token, as Quay, Harbor, GitLab and Azure do. This containerd, 1.6, asks for
/// the token without credentials, and newer ones (2.1) with those of the file: see `docs/src/mirrors.md`.
#[tokio::test]
async fn a_token_takes_the_place_of_the_credentials() {
    let objects = [
        json!({"apiVersion": "config.openshift.io/v1", "kind": "ImageTagMirrorSet", "metadata": {"name": "a"},
            "spec": {"imageTagMirrors": [{"source": "quay.io", "mirrors": ["m.test"]}]}}),
        json!({"auths": {"m.test": {"auth": "Ym9iOmh1c2g="}}}),
    ];
    let ours = registries(&objects).files();
    let text = std::str::from_utf8(ours[r"quay.io\hosts.toml"].expose()).unwrap();
    // What an earlier version wrote.
    let lower = Secret::new(text.replace("Authorization", "authorization"));
    let earlier = BTreeMap::from([(r"quay.io\hosts.toml".to_owned(), lower)]);
    let authority = Arc::new(Authority::new());
    let containerd = Containerd::start(&authority).await;
    let (basic, token) = ("Basic Ym9iOmh1c2g=".to_owned(), format!("Bearer {TOKEN}"));
    for (number, (files, then, pulls)) in
        [(ours, token.clone(), true), (earlier, format!("{token} and {basic}"), false)]
            .into_iter()
            .enumerate()
    {
        let image = Arc::new(Image::new(number));
        let behaviour = Behaviour::Known([("m.test".to_owned(), Answer::Token)].into());
        let upstream = Upstream::start(Arc::clone(&authority), Arc::clone(&image), behaviour).await;
        let output = containerd.pull(&files, "quay.io/t/x:1", &upstream).await;
        assert_eq!(output.status.success(), pulls, "{output:?}");
        let asked = upstream.asked();
        let manifest = "https://m.test/v2/t/x/manifests/1?ns=quay.io".to_owned();
        let Asked::Request(_, asked_for_token, nothing) = &asked[1] else { panic!("{asked:?}") };
        assert!(asked_for_token.starts_with("https://m.test/token?"), "{asked:?}");
        assert_eq!(nothing, &None, "{asked:?}");
        let resolve = |credentials: &String| {
            Asked::Request(Method::HEAD, manifest.clone(), Some(credentials.clone()))
        };
        assert_eq!(asked[0], resolve(&basic), "{asked:?}");
        assert_eq!(asked[2], resolve(&then), "{asked:?}");
    }
}

/// These files are not ours; this behaviour is why ours differ.
#[tokio::test]
async fn containerd_asks_the_source_where_a_file_forbids_nothing() {
    let authority = Arc::new(Authority::new());
    let containerd = Containerd::start(&authority).await;
    let push = "capabilities = [\"push\"]\n";
    let files = [
        ("an empty file", String::new()),
        ("no TOML", "server = ".to_owned()),
        ("no hosts", format!("server = \"https://m.test/v2\"\n{push}")),
        ("no such ability", "[host.\"https://m.test\"]\ncapabilities = [\"none\"]\n".to_owned()),
        ("no abilities", "server = \"https://quay.io\"\ncapabilities = []\n[host]\n".to_owned()),
        ("an empty server", format!("server = \"\"\n{push}[host.\"https://m.test\"]\n{push}")),
    ];
    for (number, (what, text)) in files.into_iter().enumerate() {
        let image = Arc::new(Image::new(number));
        let nothing = Behaviour::Known(BTreeMap::new());
        let upstream = Upstream::start(Arc::clone(&authority), image, nothing).await;
        let files = BTreeMap::from([(r"quay.io\hosts.toml".to_owned(), Secret::new(text))]);
        containerd.pull(&files, "quay.io/t/x:1", &upstream).await;
        let url = "https://quay.io/v2/t/x/manifests/1".to_owned();
        assert_eq!(upstream.asked(), [Asked::Request(Method::HEAD, url, None)], "{what}");
    }
}
