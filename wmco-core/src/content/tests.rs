use super::*;
use crate::names::platforms;
use crate::tls_profile::TlsVersion;

struct Given {
    platform: &'static str,
    worker: WorkerConfig,
    kubelet_ca: &'static [u8],
    tls_key: Secret,
    tls_profile: Option<TlsProfile>,
}

fn given() -> Given {
    Given {
        platform: platforms::NONE,
        worker: WorkerConfig { credential_provider: Some("ecr".into()), ..WorkerConfig::default() },
        kubelet_ca: b"kubelet ca",
        tls_key: Secret::new("key"),
        tls_profile: None,
    }
}

impl Given {
    fn render(&self) -> Result<HostContent, ContentError> {
        let token = ServiceAccountToken { ca: b"ca".to_vec(), token: Secret::new("token") };
        let line = |file: &payload::PayloadFile| {
            format!("{}  {}\n", Sha256::of(file.name.as_bytes()), file.image_path())
        };
        let listed = payload::all().filter(|file| !file.generated).map(line);
        HostContent::render(&ContentInputs {
            namespace: "ns",
            platform: self.platform,
            api_server: "https://api-int.test:6443",
            service_network: IpNetwork::choose(["172.30.0.0/16"]).unwrap(),
            bootstrapper: &token,
            wicd: &token,
            kubelet_ca: self.kubelet_ca,
            tls_certificate: b"certificate",
            tls_key: &self.tls_key,
            tls_profile: self.tls_profile.as_ref(),
            ca_bundle: b"",
            registries: &RegistryFiles::default(),
            worker: &self.worker,
            payload: &Digests::parse(&listed.collect::<String>()).unwrap(),
            containerd: &ContainerdSettings::default(),
            log_file_size: None,
            log_file_age: None,
        })
    }

    /// What is wanted at `path`, and its text.
    fn file(&self, path: &str) -> Option<(DesiredFile, String)> {
        let content = self.render().unwrap();
        let file = *content.files.get(&path.parse::<WindowsPath>().unwrap())?;
        let text = content.rendered.get(&file.sha256).map(Secret::expose).unwrap_or_default();
        Some((file, String::from_utf8(text.to_vec()).unwrap()))
    }
}

#[test]
fn credential_providers_go_to_aws_and_wait_for_an_empty_node() {
    let aws = Given { platform: platforms::AWS, ..given() };
    let (file, text) = aws.file(host::CREDENTIAL_PROVIDER_CONFIG).unwrap();
    assert_eq!((file.live, text.as_str()), (false, "ecr"), "kubelets read it when they start");
    let azure = Given { platform: platforms::AZURE, ..given() };
    assert_eq!(azure.file(host::CREDENTIAL_PROVIDER_CONFIG), None);
}

#[test]
fn the_exporter_is_told_the_profile_while_it_runs() {
    let path = format!(r"{}\{}", host::TLS, host::WEB_CONFIG);
    let (plain, text) = given().file(&path).unwrap();
    assert!(
        plain.live && text.starts_with("tls_server_config:") && !text.contains("min"),
        "{text}"
    );
    let profile = TlsProfile { min_version: TlsVersion::Tls13, cipher_suites: Vec::new() };
    let (file, text) = Given { tls_profile: Some(profile), ..given() }.file(&path).unwrap();
    assert!(file.live && file.sha256 != plain.sha256 && text.contains("TLS13"), "{text}");
}

#[test]
fn what_is_empty_for_a_moment_is_not_written() {
    let error = |given: Given| given.render().unwrap_err().to_string();
    let text = error(Given { kubelet_ca: b"", ..given() });
    assert!(text.contains("machine-config-controller") && text.contains("wait"), "{text}");
    let text = error(Given { tls_key: Secret::new(""), ..given() });
    assert!(text.contains("windows-machine-config-operator-tls"), "{text}");
}
