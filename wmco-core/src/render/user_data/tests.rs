use super::*;
use crate::host_key::tests::{ed25519, wire};
use crate::limits;
use crate::render::powershell::{all, commands, has_error, unset_variables};

/// Commands that only look, compute, tell or wait.
const HARMLESS: [&str; 10] = [
    "Add-Type",
    "ConvertTo-SecureString",
    "Get-Content",
    "Get-LocalUser",
    "Get-RandomPassword",
    "Get-Service",
    "Start-Sleep",
    "Test-Path",
    "Write-Error",
    "Write-Output",
];

const CAPI_IS_ABSENT: &str = "-not (Get-LocalUser -Name 'capi' -ErrorAction SilentlyContinue)";

const KEYS_ARE_NOT_OURS: &str = "-not (Test-Path -Path $authorizedKeys) -or \
                                 @(Get-Content -Path $authorizedKeys) -notcontains $mark";

const EC2LAUNCH: &str = r"$env:ProgramFiles\Amazon\EC2Launch\EC2Launch.exe";

fn key() -> AuthorizedKey {
    format!("ssh-ed25519 {}", ed25519()).parse().unwrap()
}

fn next() -> AuthorizedKey {
    let point = wire(&[b"ecdsa-sha2-nistp256", b"nistp256", &[4; 65]]);
    format!("ecdsa-sha2-nistp256 {point}").parse().unwrap()
}

fn rsa(byte: u8) -> AuthorizedKey {
    let modulus = [&[0], [byte; 2048].as_slice()].concat();
    let key = wire(&[b"ssh-rsa", &[byte; 8], &modulus]);
    format!("ssh-rsa {key}").parse().unwrap()
}

/// User data for `platform` without tags.
fn script(platform: &str, next: Option<&AuthorizedKey>) -> String {
    let text = user_data(platform, &key(), next);
    if platform == platforms::GCP {
        return text;
    }
    let text = text.strip_prefix("<powershell>").unwrap();
    text.strip_suffix("</powershell>\n<persist>true</persist>\n").unwrap().to_owned()
}

/// What `script` may change, a line for each command, in order.
fn changes(script: &str) -> Vec<String> {
    let all = commands(script).into_iter();
    let changing = all.filter(|command| !HARMLESS.contains(&command.name.as_str()));
    changing.map(|command| command.to_string()).collect()
}

/// The effects on every platform: `docs/contract/user-data.md`, UD7.
fn effects() -> Vec<String> {
    let disabled = format!("if {CAPI_IS_ABSENT}, and $user -and -not $user.Enabled");
    let absent =
        |rule: &str| format!("if -not (Get-NetFirewallRule {rule} -ErrorAction SilentlyContinue)");
    let looked_for = |rule: &str, parameter: &str| match parameter {
        "Name" => format!("Get-NetFirewallRule -ErrorAction=SilentlyContinue -Name={rule}"),
        _ => format!("Get-NetFirewallRule -DisplayName={rule} -ErrorAction=SilentlyContinue"),
    };
    let opened = |rule: &str, port: u16| {
        format!(
            "New-NetFirewallRule -Action=Allow -Direction=Inbound -DisplayName={rule} \
             -EdgeTraversalPolicy=Allow -LocalPort={port} -Protocol=TCP, {}",
            absent(&format!("-DisplayName '{rule}'"))
        )
    };
    let keys = r"C:\ProgramData\ssh\administrators_authorized_keys";
    [
        format!("Set-LocalUser -Name=Administrator -Password=$password, {disabled}"),
        format!("Enable-LocalUser -Name=Administrator, {disabled}, and $?"),
        "1..10".to_owned(),
        "Add-WindowsCapability -ErrorAction=Stop -Name=OpenSSH.Server~~~~0.0.1.0 -Online".to_owned(),
        looked_for("ContainerLogsPort", "DisplayName"),
        opened("ContainerLogsPort", 10250),
        looked_for("WindowsExporter", "DisplayName"),
        opened("WindowsExporter", 9182),
        looked_for("OpenSSH-Server-In-TCP", "Name"),
        format!(
            "New-NetFirewallRule -Action=Allow -Direction=Inbound -DisplayName=OpenSSH Server (sshd) \
             -Enabled=True -LocalPort=22 -Name=OpenSSH-Server-In-TCP -Protocol=TCP, {}",
            absent("-Name 'OpenSSH-Server-In-TCP'")
        ),
        "Enable-NetFirewallRule -Name=OpenSSH-Server-In-TCP".to_owned(),
        "Set-NetFirewallRule -Name=OpenSSH-Server-In-TCP -Profile=Any".to_owned(),
        "Get-NetFirewallRule -Name=OpenSSH-Server-In-TCP".to_owned(),
        "Set-Service -Name=sshd -StartupType=Automatic".to_owned(),
        "Start-Service -Name=sshd".to_owned(),
        "1..20".to_owned(),
        r"Set-Content -Encoding=Ascii -Path=C:\ProgramData\ssh\sshd_config -Value=$after, if Test-Path -Path $configuration, and $configured".to_owned(),
        format!(
            "Remove-Item -ErrorAction=SilentlyContinue -Force -Path={keys}, if {KEYS_ARE_NOT_OURS}"
        ),
        format!(
            "Set-Content -Encoding=Ascii -Path={keys} -Value=@( '{}' '{}' $mark ), if \
             {KEYS_ARE_NOT_OURS}",
            key(),
            next()
        ),
        format!("icacls.exe {keys} /inheritance:r /grant:r *S-1-5-32-544:F *S-1-5-18:F"),
        "Restart-Service -Name=sshd, if $configured".to_owned(),
    ]
    .into()
}

/// The effect on AWS alone: `docs/contract/user-data.md`, UD7.
fn routes() -> Vec<String> {
    let old = "if $version -lt [version] '2.0.2107'";
    [
        format!("{EC2LAUNCH} version"),
        format!(r"New-Item -Force -ItemType=Directory -Path=$env:USERPROFILE\Desktop\EC2Launchv2, {old}"),
        format!(r"Invoke-WebRequest -OutFile=$folder\AmazonEC2Launch.msi -Uri=https://s3.amazonaws.com/amazon-ec2launch-v2/windows/amd64/latest/AmazonEC2Launch.msi -UseBasicParsing, {old}"),
        format!("Start-Process -ArgumentList='/i', \"`\"$installer`\"\", '/quiet', '/norestart' -FilePath=msiexec.exe -PassThru -Wait, {old}"),
        format!("{EC2LAUNCH} run-task add-routes --persistent"),
    ]
    .into()
}

#[test]
fn each_platform_has_the_effects_of_the_contract_in_order() {
    for platform in platforms::ALL {
        let mut expected = effects();
        if platform == platforms::AWS {
            expected.extend(routes());
        }
        assert_eq!(changes(&script(platform, Some(&next()))), expected, "{platform}");
    }
}

/// The original gives the function's name for a password.
#[test]
fn the_password_is_random() {
    let script = script(platforms::NONE, None);
    assert_eq!(
        all("function_statement", &script),
        ["function Get-RandomPassword {\n    Add-Type -AssemblyName 'System.Web'\n    \
          [System.Web.Security.Membership]::GeneratePassword(16, 2)\n}"]
    );
    let commands = commands(&script);
    let places = ["ConvertTo-SecureString", "Get-RandomPassword", "Set-LocalUser"].map(|name| {
        let mut places = commands.iter().enumerate().filter(|(_, command)| command.name == name);
        let (place, command) = places.next().unwrap();
        assert_eq!(places.count(), 0, "{name}");
        (place, command.to_string())
    });
    assert!(places.is_sorted());
    assert!(places[0].1.contains(" -String=(Get-RandomPassword)"), "{}", places[0].1);
    assert!(
        all("assignment_expression", &script)
            .iter()
            .any(|text| text.starts_with("$password = ConvertTo-SecureString "))
    );
}

#[test]
fn keys_open_the_host_and_passwords_do_not() {
    let script = script(platforms::NONE, None);
    let replaced: Vec<_> = all("comparison_expression", &script)
        .into_iter()
        .filter(|text| text.starts_with("$before -replace"))
        .max_by_key(|text| text.len())
        .into_iter()
        .flat_map(|text| all("verbatim_string_characters", text))
        .collect();
    assert_eq!(
        replaced,
        [
            r"'^#\s*PubkeyAuthentication\s+yes\s*$'",
            "'PubkeyAuthentication yes'",
            r"'^#\s*PasswordAuthentication\s+yes\s*$'",
            "'PasswordAuthentication no'",
        ]
    );
}

#[test]
fn every_script_is_powershell() {
    for platform in platforms::ALL {
        for next in [None, Some(&next())] {
            let script = script(platform, next);
            assert!(!has_error(&script), "{platform}");
            for (part, number) in [("}", 1), ("'", 1), (")", 2)] {
                let broken = script.replacen(part, "", number);
                assert!(has_error(&broken), "{platform}: the parser finds that {part} is missing");
            }
        }
    }
}

#[test]
fn every_variable_is_set() {
    let (unset, used) = unset_variables(&script(platforms::AWS, Some(&next())));
    assert_eq!(unset, std::collections::BTreeSet::new());
    assert!(used > 15, "{used}");
}

#[test]
fn the_texts_read_well() {
    insta::assert_snapshot!("aws", user_data(platforms::AWS, &key(), Some(&next())));
    insta::assert_snapshot!("gcp", user_data(platforms::GCP, &key(), None));
    let azure = user_data(platforms::AZURE, &key(), None);
    insta::assert_snapshot!("azure", azure);
    for platform in [platforms::VSPHERE, platforms::NUTANIX, platforms::NONE, "", "BareMetal"] {
        assert_eq!(user_data(platform, &key(), None), azure, "{platform}");
    }
    assert_eq!(script(platforms::AZURE, None), script(platforms::GCP, None));
    assert!(!SCRIPT.contains(CLOSE) && !ROUTES.contains(CLOSE));
}

#[test]
fn every_cloud_takes_the_longest_text() {
    let text = user_data(platforms::AWS, &rsa(1), Some(&rsa(2)));
    assert!(text.len() <= limits::USER_DATA_BYTES, "{}", text.len());
    assert!(text.is_ascii() && text.contains(&rsa(1).to_string()));
}

#[test]
fn a_key_that_is_given_twice_stands_there_once() {
    let once = user_data(platforms::GCP, &key(), None);
    assert_eq!(user_data(platforms::GCP, &key(), Some(&key())), once);
}

/// A file that was written by other user data is written anew, and no other one.
#[test]
fn the_mark_is_that_of_the_keys() {
    let mark = |key: &AuthorizedKey, next: Option<&AuthorizedKey>| {
        let text = user_data(platforms::AWS, key, next);
        let line = text.lines().find(|line| line.starts_with("$mark = ")).unwrap();
        assert!(line.starts_with(&format!("$mark = '{}", host::USER_DATA_MARK)), "{line}");
        line.to_owned()
    };
    let marks = [
        mark(&key(), None),
        mark(&next(), None),
        mark(&key(), Some(&next())),
        mark(&next(), Some(&key())),
    ];
    let different: std::collections::BTreeSet<_> = marks.iter().collect();
    assert_eq!(different.len(), marks.len());
    assert_eq!(mark(&key(), None), marks[0]);
}

#[test]
fn names_come_from_one_place() {
    assert!(SCRIPT.contains("{{"));
    assert!(!user_data(platforms::AWS, &key(), None).contains("{{"));
    for name in [
        host::ADMINISTRATOR,
        host::AUTHORIZED_KEYS,
        host::AZURE_USER,
        host::CONTAINER_LOGS_RULE,
        host::EXPORTER_RULE,
        host::SSH_CAPABILITY,
        host::SSH_CONFIG,
        host::SSH_RULE,
        host::USER_DATA_MARK,
    ] {
        assert!(!SCRIPT.contains(&format!("'{name}")), "{name}");
    }
}
