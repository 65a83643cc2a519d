# Lets the operator of the cluster log in to this machine over SSH.
#
# A machine may run this at each of its starts, so every step looks first and changes only what
# differs. A step that fails is logged, and the others go on.
$ErrorActionPreference = 'Continue'

# 16 characters, at least 2 of them neither letters nor digits.
function Get-RandomPassword {
    Add-Type -AssemblyName 'System.Web'
    [System.Web.Security.Membership]::GeneratePassword(16, 2)
}

# A user who is disabled cannot log in, not even with a key. Nobody learns the password.
if (-not (Get-LocalUser -Name '{{AZURE_USER}}' -ErrorAction SilentlyContinue)) {
    $user = Get-LocalUser -Name '{{ADMINISTRATOR}}' -ErrorAction SilentlyContinue
    if ($user -and -not $user.Enabled) {
        $password = ConvertTo-SecureString -String (Get-RandomPassword) -AsPlainText -Force
        Set-LocalUser -Name '{{ADMINISTRATOR}}' -Password $password
        # Not with the password that it had.
        if ($?) { Enable-LocalUser -Name '{{ADMINISTRATOR}}' }
    }
}

# Windows Server 2025 has the SSH server, earlier ones fetch it from Windows Update.
foreach ($attempt in 1..10) {
    if (Get-Service -Name '{{SSH_SERVICE}}' -ErrorAction SilentlyContinue) { break }
    if ($attempt -gt 1) { Start-Sleep -Seconds 5 }
    try {
        $null = Add-WindowsCapability -Online -Name '{{SSH_CAPABILITY}}' -ErrorAction Stop
    } catch {
        Write-Output "attempt $attempt to install the SSH server failed: $_"
    }
}
if (-not (Get-Service -Name '{{SSH_SERVICE}}' -ErrorAction SilentlyContinue)) {
    throw 'There is no SSH server: put {{SSH_CAPABILITY}} into the image of this ' +
        'machine, or let it reach Windows Update and restart it.'
}

# Logs of containers, and commands in them, come from the kubelet.
if (-not (Get-NetFirewallRule -DisplayName '{{CONTAINER_LOGS_RULE}}' -ErrorAction SilentlyContinue)) {
    $null = New-NetFirewallRule -DisplayName '{{CONTAINER_LOGS_RULE}}' -Direction Inbound `
        -Protocol TCP -LocalPort 10250 -Action Allow -EdgeTraversalPolicy Allow
}
if (-not (Get-NetFirewallRule -DisplayName '{{EXPORTER_RULE}}' -ErrorAction SilentlyContinue)) {
    $null = New-NetFirewallRule -DisplayName '{{EXPORTER_RULE}}' -Direction Inbound `
        -Protocol TCP -LocalPort 9182 -Action Allow -EdgeTraversalPolicy Allow
}
if (-not (Get-NetFirewallRule -Name '{{SSH_RULE}}' -ErrorAction SilentlyContinue)) {
    $null = New-NetFirewallRule -Name '{{SSH_RULE}}' -DisplayName 'OpenSSH Server (sshd)' `
        -Enabled True -Direction Inbound -Protocol TCP -LocalPort 22 -Action Allow
}
# The rule that comes with Windows Server 2025 is for private networks only.
Enable-NetFirewallRule -Name '{{SSH_RULE}}'
Set-NetFirewallRule -Name '{{SSH_RULE}}' -Profile Any
Get-NetFirewallRule -Name '{{SSH_RULE}}'

# The first start of the service writes its default configuration, soon after it is called running.
$configuration = '{{SSH_CONFIG}}'
Set-Service -Name '{{SSH_SERVICE}}' -StartupType Automatic
Start-Service -Name '{{SSH_SERVICE}}'
foreach ($attempt in 1..20) {
    if (Test-Path -Path $configuration) { break }
    Start-Sleep -Seconds 1
}

# A key opens this machine, a password does not. What somebody has set already stays.
$configured = $false
if (Test-Path -Path $configuration) {
    $before = @(Get-Content -Path $configuration)
    $after = $before -replace '^#\s*PubkeyAuthentication\s+yes\s*$', 'PubkeyAuthentication yes' `
        -replace '^#\s*PasswordAuthentication\s+yes\s*$', 'PasswordAuthentication no'
    $configured = ($before -join "`n") -cne ($after -join "`n")
    if ($configured) { Set-Content -Path $configuration -Value $after -Encoding Ascii }
}

# Written once: keys that the operator exchanges later outlive a restart of the machine. The last line
# tells a file of this user data from one that came with the image.
$authorizedKeys = '{{AUTHORIZED_KEYS}}'
$mark = '{{MARK}}'
if (-not (Test-Path -Path $authorizedKeys) -or
    @(Get-Content -Path $authorizedKeys) -notcontains $mark) {
    # A file of somebody else may have other owners and rights.
    Remove-Item -Path $authorizedKeys -Force -ErrorAction SilentlyContinue
    Set-Content -Path $authorizedKeys -Encoding Ascii -Value @(
{{KEYS}}
        $mark
    )
}
# The SSH server passes over a file that others may write to. Administrators and the system, by
# identifiers that are the same in all languages.
icacls.exe $authorizedKeys '/inheritance:r' '/grant:r' '*S-1-5-32-544:F' '*S-1-5-18:F'
if ($LASTEXITCODE -ne 0) { Write-Error "icacls ended with $LASTEXITCODE for $authorizedKeys" }

if ($configured) { Restart-Service -Name '{{SSH_SERVICE}}' }
