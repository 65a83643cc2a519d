//! What new machines of the Go operator run.
//!
//! Source: `docs/contract/user-data.md`, UD7: another text with the effects that it lists.

/// The text on AWS for a key in the form of `authorized_keys`.
pub(super) fn user_data(key: &str) -> String {
    let script = SCRIPT.replace("PUBLIC_KEY", key);
    format!("<powershell>{script}</powershell>\n<persist>true</persist>\n")
}

const SCRIPT: &str = r#"function New-Secret {
  Add-Type -AssemblyName System.Web
  return [System.Web.Security.Membership]::GeneratePassword(16, 2)
}
if (-not (Get-LocalUser capi -ErrorAction SilentlyContinue)) {
  $admin = Get-LocalUser Administrator
  if (-not $admin.Enabled) {
    $admin | Set-LocalUser -Password (ConvertTo-SecureString -AsPlainText -Force New-Secret)
    Enable-LocalUser Administrator
  }
}
Add-WindowsCapability -Online -Name OpenSSH.Server~~~~0.0.1.0
New-NetFirewallRule -DisplayName ContainerLogsPort -LocalPort 10250 -Protocol TCP -Direction Inbound -Action Allow -EdgeTraversalPolicy Allow
New-NetFirewallRule -DisplayName WindowsExporter -LocalPort 9182 -Protocol TCP -Direction Inbound -Action Allow -EdgeTraversalPolicy Allow
Set-NetFirewallRule -Name OpenSSH-Server-In-TCP -Enabled True -Profile Any
Set-Service -Name sshd -StartupType Automatic
Start-Service sshd
$file = "$env:ProgramData\ssh\administrators_authorized_keys"
New-Item -Force $file
"PUBLIC_KEY`n" | Out-File $file -Encoding ascii
$acl = Get-Acl $file
$acl.SetAccessRuleProtection($true, $false)
$acl | Set-Acl
Restart-Service sshd
"#;
