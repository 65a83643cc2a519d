//! Tests the way from the generated ConfigMap to a configured node, with agent and daemon on one fake host.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use wmco_core::digest::Sha256;
use wmco_core::names::{self, host};
use wmco_core::payload;
use wmco_core::protocol::{
    Access, HostPlan, HostStep, PROTOCOL, ReportLine, ServiceRunState, staged_agent,
    staged_content, staged_plan,
};
use wmco_core::winpath::WindowsPath;
use wmco_services::agent::Agent;
use wmco_services::daemon::{Desired, ManifestState, Next, PassContext, pass};
use wmco_services::fake::{Call, FakeWindows};
use wmco_services::generate::{ManifestInputs, manifest};
use wmco_services::manifest::Manifest;
use wmco_services::services::ScriptResults;
use wmco_services::windows::{HttpAnswer, Windows as _};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const SUBNET: &str = "k8s.ovn.org/hybrid-overlay-node-subnet";

fn path(text: &str) -> WindowsPath {
    text.parse().expect("a constant path is valid")
}

/// Returns the programs on the command lines of a manifest.
fn programs(manifest: &Manifest) -> BTreeSet<WindowsPath> {
    let words = manifest.services().iter().flat_map(|service| service.command.split(' '));
    let paths = words.filter_map(|word| word.parse::<WindowsPath>().ok());
    paths.filter(|path| path.file_name().contains(".exe")).collect()
}

fn apply(host: &FakeWindows, steps: Vec<HostStep>) {
    let json = serde_json::to_vec(&HostPlan { protocol: PROTOCOL, vacant_since: None, steps })
        .expect("plain data");
    let file = staged_plan(Sha256::of(&json));
    host.put_file(&file, json);
    let mut lines = Vec::new();
    let done = Agent::new(host, "1", NOW).apply(&file, &mut |line| lines.push(line));
    assert!(done.expect("the host can be probed"), "{lines:#?}");
    assert!(matches!(lines.last(), Some(ReportLine::Probed(_))));
}

/// Returns the names of the script files that ran; only administrators may replace any of them.
fn scripts_run(host: &FakeWindows) -> BTreeSet<String> {
    let runs = host.changes().into_iter().filter(|(call, _)| *call == Call::PowerShellRun);
    let files = runs.filter_map(|(_, text)| text.split(' ').next()?.parse::<WindowsPath>().ok());
    let closed = |file: WindowsPath| {
        for at in [Some(file.clone()), file.parent()].iter().flatten() {
            assert_eq!(host.files().access(at).ok(), Some(Access::Administrators), "{at}");
        }
        file.file_name().to_owned()
    };
    files.map(closed).collect()
}

#[test]
fn an_aws_machine_becomes_a_node_and_a_bare_machine_again() {
    let inputs = ManifestInputs {
        platform: "AWS".to_owned(),
        api_server: "https://api-int.example.test:6443".to_owned(),
        ..ManifestInputs::default()
    };
    let manifest = manifest(&inputs).expect("the inputs fit");
    let data = manifest.render();
    let bare = FakeWindows::new("winhost");
    let first = bare.snapshot();
    bare.answer_scripts(&[
        ("windows-defender-exclusion.ps1", ""),
        ("-hostnameOverride win-1 -clusterCIDR 10.132.4.0/24 ", ""),
    ]);
    bare.set_http(|request| {
        let name = request.path.ends_with("meta-data/local-hostname");
        let body = if name { "ip-10-0-0-10.internal" } else { "" };
        Some(HttpAnswer { status: 200, body: body.to_owned() })
    });
    let agent = staged_agent(Sha256::of(b"agent"));
    bare.put_file(&agent, "agent");
    let host = bare.running_as(agent);

    let mut steps = vec![
        HostStep::EnsureDirectory { path: path(host::ROOT), access: Access::Administrators },
        HostStep::InstallAgent,
    ];
    for program in programs(&manifest) {
        let content = program.to_string();
        let sha256 = Sha256::of(content.as_bytes());
        let packed = zstd::encode_all(content.as_bytes(), 3).expect("memory can be packed");
        host.put_file(&staged_content(sha256), packed);
        steps.push(HostStep::PlaceFile { path: program, sha256, access: Access::Inherited });
    }
    let folder = path(host::SCRIPTS);
    let access = Access::of_directory(&folder);
    steps.push(HostStep::EnsureDirectory { path: folder, access });
    for file in payload::files("AWS").filter(|file| file.folder == host::SCRIPTS) {
        let sha256 = Sha256::of(file.name.as_bytes());
        let packed = zstd::encode_all(file.name.as_bytes(), 3).expect("memory can be packed");
        host.put_file(&staged_content(sha256), packed);
        steps.push(HostStep::PlaceFile { path: file.destination(), sha256, access: file.access });
    }
    steps.push(HostStep::Bootstrap { manifest: data.clone() });
    steps.push(HostStep::EnsureDaemon { arguments: vec!["controller".to_owned()] });
    apply(&host, steps);
    let kubelet = host.snapshot().services[&"kubelet".parse().expect("a name")].clone();
    assert_eq!(kubelet.1, ServiceRunState::Running);
    assert!(
        kubelet.0.command.contains("--hostname-override=ip-10-0-0-10.internal --node-ip=10.0.0.10")
    );

    // The node exists, its subnet does not yet: all services except kube-proxy start.
    let mut annotations =
        BTreeMap::from([(names::DESIRED_VERSION_ANNOTATION.to_owned(), "1".to_owned())]);
    let mut results = ScriptResults::new();
    let daemon = host.running_as(path(host::AGENT));
    let mut run = |annotations: &mut BTreeMap<String, String>| -> Next {
        let node: Value = json!({
            "metadata": {"name": "win-1", "annotations": annotations},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let desired = Desired { node: Some(&node), manifest: ManifestState::Read(&manifest) };
        let context = PassContext { windows: &daemon, bundle: None, should_continue: &|| true };
        let pass = pass(context, desired, &mut results, NOW).expect("the host can be seen");
        assert_eq!(pass.failures, Vec::<String>::new());
        annotations.extend(pass.annotations);
        pass.plan.next
    };
    while run(&mut annotations) == Next::Now {}
    assert!(!annotations.contains_key(names::VERSION_ANNOTATION));
    annotations.insert(SUBNET.to_owned(), "10.132.4.0/24".to_owned());
    while run(&mut annotations) == Next::Now {}
    assert_eq!(annotations.get(names::VERSION_ANNOTATION).map(String::as_str), Some("1"));
    let ours = ["network-conf.ps1", "windows-defender-exclusion.ps1"].map(str::to_owned);
    assert_eq!(scripts_run(&host), ours.into());
    let services = host.snapshot().services;
    for service in manifest.services() {
        assert_eq!(services[&service.name].1, ServiceRunState::Running, "{}", service.name);
    }

    apply(
        &host,
        vec![
            HostStep::RemoveDaemon,
            HostStep::RemoveServices { manifests: vec![data] },
            HostStep::RemoveInstallation,
        ],
    );
    assert_eq!(host.snapshot().without(&path(host::ROOT)), first);
}
