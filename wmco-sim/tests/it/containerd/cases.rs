//! Forty-three realistic cases, one line each where possible.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Case;
use super::behaviour::Answer::{
    self, BadCertificate, Image, NoContent, NotFound, Refused, ServerError, Unauthorized,
};
use super::behaviour::Behaviour;

/// Returns a mirror set with one entry.
pub(super) fn set(kind: &str, name: &str, source: &str, mirrors: &[String], policy: &str) -> Value {
    let list = match kind {
        "ImageTagMirrorSet" => "imageTagMirrors",
        "ImageContentSourcePolicy" => "repositoryDigestMirrors",
        _ => "imageDigestMirrors",
    };
    let entry = json!({"source": source, "mirrors": mirrors, "mirrorSourcePolicy": policy});
    json!({"kind": kind, "metadata": {"name": name}, "spec": {list: [entry]}})
}

fn texts(mirrors: &[&str]) -> Vec<String> {
    mirrors.iter().map(|mirror| (*mirror).to_owned()).collect()
}

fn tags(source: &str, mirrors: &[&str]) -> Value {
    set("ImageTagMirrorSet", source, source, &texts(mirrors), "")
}

fn digests(source: &str, mirrors: &[&str]) -> Value {
    set("ImageDigestMirrorSet", source, source, &texts(mirrors), "")
}

fn never(source: &str, mirrors: &[&str]) -> Value {
    set("ImageTagMirrorSet", source, source, &texts(mirrors), "NeverContactSource")
}

fn never_digests(source: &str, mirrors: &[&str]) -> Value {
    set("ImageDigestMirrorSet", source, source, &texts(mirrors), "NeverContactSource")
}

fn sources(sources: &Value) -> Value {
    json!({"kind": "Image", "metadata": {"name": "cluster"}, "spec": {"registrySources": sources}})
}

fn insecure(registries: &[&str]) -> Value {
    sources(&json!({"insecureRegistries": registries}))
}

fn blocked(registries: &[&str]) -> Value {
    sources(&json!({"blockedRegistries": registries}))
}

/// Returns a pull secret; all entries have different credentials.
pub(super) fn secret(keys: &[&str]) -> Value {
    let entry = |(number, key): (usize, &&str)| {
        // The base64 form of `u0:p`, `u1:p` and so on.
        (
            (*key).to_owned(),
            json!({"auth": format!("dT{}6cA==", ["A", "E", "I", "M", "Q", "U", "Y", "c"][number])}),
        )
    };
    json!({"auths": keys.iter().enumerate().map(entry).collect::<serde_json::Map<_, _>>()})
}

/// Returns a case; registries that are not among `answers` have nothing.
fn case(objects: &[Value], image: &str, answers: &[(&str, Answer)]) -> Case {
    let known: BTreeMap<String, Answer> =
        answers.iter().map(|(registry, answer)| ((*registry).to_owned(), *answer)).collect();
    Case { objects: objects.to_vec(), image: image.to_owned(), behaviour: Behaviour::Known(known) }
}

/// All cases.
pub(super) fn all() -> Vec<Case> {
    [
        sources_and_mirrors(),
        failures(),
        policies(),
        credentials(),
        insecure_and_blocked(),
        on_the_host_itself(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn sources_and_mirrors() -> Vec<Case> {
    let shared = [tags("quay.io/a", &["m.test/a"]), tags("quay.io/b", &["n.test/x/b"])];
    vec![
        case(&[], "quay.io/team/app:1", &[("quay.io", Image)]),
        case(&[], "docker.io/library/busybox:latest", &[("registry-1.docker.io", Image)]),
        case(&[], "quay.io/team/app@DIGEST", &[]),
        case(&[tags("quay.io", &["m.test"])], "quay.io/app:1", &[("m.test", Image)]),
        case(&[tags("quay.io/t", &["m.test/p/t"])], "quay.io/t/app:1", &[("quay.io", Image)]),
        case(&[tags("quay.io/t/app", &["m.test/t/app"])], "quay.io/t/app:1", &[("m.test", Image)]),
        case(&[digests("quay.io/t", &["m.test/p/q/t"])], "quay.io/t/app:1", &[("quay.io", Image)]),
        case(&[digests("quay.io", &["m.test/p"])], "quay.io/t/app@DIGEST", &[("m.test", Image)]),
        case(&[digests("quay.io", &["m.test/p"])], "quay.io/t/app@DIGEST", &[]),
        case(&[tags("a.test:5000/t", &["m.test:8443/t"])], "a.test:5000/t/x:1", &[]),
        case(&[tags("docker.io", &["m.test/hub"])], "docker.io/library/busybox:1", &[]),
        case(&[tags("docker.io/library", &["m.test/library"])], "docker.io/library/x@DIGEST", &[]),
        case(&shared, "quay.io/b/x:1", &[("m.test", Image)]),
        case(&shared, "quay.io/c/x:1", &[("n.test", Image)]),
        case(&[tags("quay.io", &["z.test", "b.test/1", "y.test"])], "quay.io/x:1", &[]),
        case(&[tags("*.io", &["m.test"])], "quay.io/x:1", &[("quay.io", Image)]),
        case(&[tags("quay.io/t/x", &["m.test/other"])], "quay.io/t/x:1", &[("quay.io", Image)]),
        case(&[tags("a.test", &["quay.io"])], "quay.io/x:1", &[("quay.io", Image)]),
    ]
}

/// Two registries fail in different ways before the last one answers.
fn failures() -> Vec<Case> {
    let two = [tags("quay.io", &["m.test", "n.test"])];
    let case = |first, second, last, version| {
        let answers = [("m.test", first), ("n.test", second), ("quay.io", last)];
        case(&two, &format!("quay.io/app{version}"), &answers)
    };
    vec![
        case(Unauthorized, ServerError, Image, ":1"),
        case(BadCertificate, Refused, Image, ":1"),
        case(Refused, BadCertificate, Image, "@DIGEST"),
        case(NoContent, Image, Image, ":1"),
        case(NoContent, NoContent, NotFound, "@DIGEST"),
        case(ServerError, NotFound, Unauthorized, "@DIGEST"),
    ]
}

fn policies() -> Vec<Case> {
    let mixed = [never("quay.io", &["m.test"]), digests("quay.io", &["n.test"])];
    vec![
        case(&[never("quay.io", &["m.test/p", "n.test"])], "quay.io/x:1", &[("quay.io", Image)]),
        case(&[never_digests("quay.io", &["m.test"])], "quay.io/x:1", &[("m.test", Image)]),
        case(&[never_digests("quay.io", &["m.test"])], "quay.io/x@DIGEST", &[("quay.io", Image)]),
        case(&mixed, "quay.io/x:1", &[("n.test", Image)]),
        case(&mixed, "quay.io/x@DIGEST", &[("n.test", Image)]),
        case(&[never("quay.io/t", &["m.test/u"])], "quay.io/t:1", &[("quay.io", Image)]),
        case(&[never("quay.io", &[])], "quay.io/t:1", &[("quay.io", Image)]),
    ]
}

fn credentials() -> Vec<Case> {
    let two = tags("quay.io/t", &["m.test/p/t", "n.test:8443/t"]);
    let keys = |keys: &[&str]| [two.clone(), secret(keys)];
    vec![
        case(&keys(&["m.test", "quay.io"]), "quay.io/t/x:1", &[("quay.io", Image)]),
        case(&keys(&["m.test", "m.test/p", "n.test"]), "quay.io/t/x:1", &[("m.test", NoContent)]),
        case(&keys(&["n.test:8443"]), "quay.io/t/x@DIGEST", &[("n.test:8443", Image)]),
        case(&[never("quay.io", &["m.test"]), secret(&["m.test"])], "quay.io/t/x:1", &[]),
    ]
}

fn insecure_and_blocked() -> Vec<Case> {
    let lab = [tags("quay.io", &["lab.test:5000"]), insecure(&["lab.test:5000"])];
    vec![
        case(&lab, "quay.io/x:1", &[("lab.test:5000", BadCertificate)]),
        case(&lab, "quay.io/x:1", &[("https://lab.test:5000", Refused), ("lab.test:5000", Image)]),
        case(&[insecure(&["lab.test"])], "lab.test/x@DIGEST", &[("https://lab.test", NotFound)]),
        case(&[blocked(&["quay.io"])], "quay.io/x:1", &[("quay.io", Image)]),
        case(
            &[tags("quay.io", &["m.test", "n.test"]), blocked(&["quay.io", "m.test"])],
            "quay.io/x:1",
            &[("quay.io", Image), ("m.test", Image)],
        ),
    ]
}

/// These registries are not requested through the proxy.
fn on_the_host_itself() -> Vec<Case> {
    let closed = tags("quay.io", &[super::CLOSED, "m.test"]);
    vec![
        case(&[], "127.0.0.1:PORT/t/x:1", &[("127.0.0.1", Image)]),
        case(&[], "localhost:PORT/t/x@DIGEST", &[("localhost", Image)]),
        case(&[closed], "quay.io/x:1", &[(super::CLOSED, Refused), ("m.test", Image)]),
    ]
}
