use super::*;

fn inputs(platform: &str) -> ManifestInputs {
    ManifestInputs {
        platform: platform.to_owned(),
        api_server: "https://api-int.example.test:6443".to_owned(),
        ..ManifestInputs::default()
    }
}

#[test]
fn start_order_follows_needs() {
    let manifest = manifest(&inputs("Azure")).unwrap();
    let names: Vec<&str> = manifest.start_order().map(|service| service.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "containerd",
            "kubelet",
            "windows_exporter",
            "hybrid-overlay-node",
            "csi-proxy",
            "kube-proxy",
            "cloud-node-manager",
        ]
    );
}

#[test]
fn values_that_would_split_are_refused() {
    let mut bad = inputs("AWS");
    bad.kubelet.cloud_provider = Some("external --v=9".to_owned());
    let error = manifest(&bad).unwrap_err().to_string();
    assert!(error.starts_with("the kubelet argument cloud-provider"), "{error}");
    assert!(manifest(&ManifestInputs { api_server: String::new(), ..inputs("AWS") }).is_err());
}

#[test]
fn a_cloud_config_with_a_blank_in_its_name_stays_one_argument() {
    let mut blank = inputs("Azure");
    blank.kubelet.cloud_config = Some("/etc/kubernetes/my cloud.conf".to_owned());
    let manifest = manifest(&blank).unwrap();
    let kubelet = manifest.service(&"kubelet".parse().unwrap()).unwrap();
    assert!(kubelet.command.contains(r#" "--cloud-config=C:\k\my cloud.conf" "#), "{kubelet:?}");
}

#[test]
fn a_cloud_config_that_is_no_file_name_is_refused() {
    for name in ["a\nb", "a\"b", "a?"] {
        let mut bad = inputs("Azure");
        bad.kubelet.cloud_config = Some(format!("/etc/{name}"));
        let error = manifest(&bad).unwrap_err().to_string();
        assert!(error.starts_with("the kubelet argument cloud-config"), "{error}");
    }
}

#[test]
fn an_empty_cloud_config_gives_no_flag() {
    let mut empty = inputs("Azure");
    empty.kubelet.cloud_config = Some(String::new());
    assert_eq!(manifest(&empty).unwrap(), manifest(&inputs("Azure")).unwrap());
}

#[test]
fn proxies_are_not_printed() {
    let proxy = ProxySettings::from_environment(|name| {
        (name == "HTTP_PROXY").then(|| "http://user:word@p".to_owned())
    });
    assert!(proxy.is_enabled());
    let inputs = ManifestInputs { proxy, ..inputs("None") };
    let text = format!("{inputs:?} {:?}", manifest(&inputs).unwrap());
    assert!(text.contains("HTTP_PROXY") && !text.contains("word"), "{text}");
}

/// A kubelet with an argument for a missing file does not start.
#[test]
fn kubelets_are_told_of_credential_providers_that_there_are() {
    let told = |platform: &str, no_credential_provider| {
        let kubelet = KubeletArguments { no_credential_provider, ..KubeletArguments::default() };
        let manifest = manifest(&ManifestInputs { kubelet, ..inputs(platform) }).unwrap();
        let kubelet = manifest.services().iter().find(|s| s.name.as_str() == "kubelet").unwrap();
        kubelet.command.contains("--image-credential-provider-config=")
    };
    assert_eq!([told("AWS", false), told("AWS", true), told("Azure", false)], [true, false, false]);
}
