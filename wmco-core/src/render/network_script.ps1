# Writes the CNI and kube-proxy configurations of this node. WICD runs it before kube-proxy is
# compared with what it should be, so every step looks first and changes only what differs.
#
# An error begins with "not yet" when waiting may help, and with "broken" when it does not.
param(
    [Parameter(Mandatory = $true)] [string] $hostnameOverride,
    [Parameter(Mandatory = $true)] [string] $clusterCIDR,
    [Parameter(Mandatory = $true)] [string] $kubeConfigPath,
    [Parameter(Mandatory = $true)] [string] $kubeProxyConfigPath,
    [Parameter(Mandatory = $true)] [int] $verbosity
)

Set-StrictMode -Version 1.0
$ErrorActionPreference = 'Stop'
# Functions of a module do not see the line above, and only report what HNS refuses.
$PSDefaultParameterValues = @{ '*-Hns*:ErrorAction' = 'Stop' }
Import-Module -Name '{{HNS_MODULE}}' -DisableNameChecking

# Gives what $look finds, which is asked again each second, $attempts times at most.
function Wait-For([string] $what, [scriptblock] $look, [int] $attempts = 20) {
    $problem = $null
    foreach ($attempt in 1..$attempts) {
        if ($attempt -gt 1) { Start-Sleep -Seconds 1 }
        $problem = $null
        try {
            $found = @(& $look)
            if ($found.Count -gt 0) { return $found }
        } catch {
            $problem = $_
        }
        Write-Host "attempt ${attempt}: no $what yet $problem"
    }
    if ($problem) { throw "broken: cannot look for ${what}: $problem" }
    throw "not yet: cannot find $what, it is looked for again in the next pass"
}

# Puts values, as JSON of their own type, where the template has their names between @.
function Format-Template([string] $template, [hashtable] $values) {
    return [regex]::Replace($template, '"@(\w+)@"', {
        param($match)
        ConvertTo-Json -InputObject $values[$match.Groups[1].Value] -Compress
    })
}

# UTF-8 without a byte order mark, which the readers of these files do not expect.
function Set-TextIfDifferent([string] $path, [string] $text) {
    $text = $text.Replace("`r", '')
    $current = ''
    if ([IO.File]::Exists($path)) { $current = [IO.File]::ReadAllText($path).Replace("`r", '') }
    if ($current -cne $text) { [IO.File]::WriteAllText($path, $text) }
}

# A network without its own address on the host is still being made.
$networks = @(Wait-For -what 'HNS network with name {{OVERLAY_NETWORK}}' -look {
    Get-HnsNetwork |
        Where-Object { $_.Name -eq '{{OVERLAY_NETWORK}}' -and $_.ID -and $_.ManagementIP }
})
$network = $networks |
    Where-Object { @($_.Subnets | ForEach-Object { $_.AddressPrefix }) -contains $clusterCIDR } |
    Select-Object -First 1
if (-not $network) {
    $subnets = @($networks | ForEach-Object { $_.Subnets } | ForEach-Object { $_.AddressPrefix })
    throw "broken: HNS network {{OVERLAY_NETWORK}} has the subnets '$($subnets -join ', ')' " +
        "but the node has '$clusterCIDR', remove the network or correct the node's annotation"
}

$cni = @'
{{CNI_CONFIG}}
'@
Set-TextIfDifferent -path '{{CNI_CONFIG_FILE}}' -text (Format-Template $cni @{
    subnet = $clusterCIDR
    managementAddress = [string] $network.ManagementIP
})

# An endpoint of an earlier network leads nowhere. One of a network with another name is not ours.
$others = @(Get-HnsNetwork |
    Where-Object { $_.Name -ne '{{OVERLAY_NETWORK}}' } | ForEach-Object { $_.ID })
$left = @(Get-HnsEndpoint | Where-Object {
    $_.Name -eq '{{VIP_ENDPOINT}}' -and $_.VirtualNetwork -ne $network.ID -and
        $others -notcontains $_.VirtualNetwork
})
foreach ($old in $left) {
    Write-Host "endpoint $($old.ID) is of an earlier network and goes"
    $null = hns\Invoke-HNSRequest -Method DELETE -Type endpoints -Id $old.ID
}

$ours = {
    Get-HnsEndpoint | Where-Object {
        $_.Name -eq '{{VIP_ENDPOINT}}' -and $_.VirtualNetwork -eq $network.ID
    }
}
$isNew = @(& $ours).Count -eq 0
if ($isNew) {
    $null = hns\New-HNSEndpoint -NetworkId $network.ID -Name '{{VIP_ENDPOINT}}'
}
$endpoint = @(Wait-For -what 'MAC address of endpoint {{VIP_ENDPOINT}}' -look {
    & $ours | Where-Object { $_.ID -and $_.MacAddress }
})[0]

# An adapter has a link-local address as long as it waits for its own.
$addresses = {
    Get-NetIPConfiguration -AllCompartments -All -Detailed |
        Where-Object { $_.NetAdapter -and $_.NetAdapter.LinkLayerAddress -eq $endpoint.MacAddress } |
        ForEach-Object { $_.IPv4Address } | Where-Object { $_ -and $_.IPAddress } |
        ForEach-Object { ([string] $_.IPAddress).Trim() } |
        Where-Object { $_ -and $_ -notlike '169.254.*' }
}
$isAttached = $false
if (-not $isNew) {
    # An adapter can be away for a moment; one that stays away was never there, as after a run that
    # was cut short.
    try {
        $null = Wait-For -what 'adapter of endpoint {{VIP_ENDPOINT}}' -look $addresses -attempts 5
        $isAttached = $true
    } catch {
        Write-Host "$_"
    }
}
if (-not $isAttached) {
    try {
        $null = hns\Attach-HNSHostEndpoint -EndpointID $endpoint.ID -CompartmentID 1
    } catch {
        throw "broken: endpoint {{VIP_ENDPOINT}} has no adapter and cannot be attached: $_"
    }
}

$kubeProxy = @'
{{KUBE_PROXY_CONFIG}}
'@
Set-TextIfDifferent -path $kubeProxyConfigPath -text (Format-Template $kubeProxy @{
    clusterCIDR = $clusterCIDR
    hostnameOverride = $hostnameOverride
    kubeConfigPath = $kubeConfigPath
    sourceVip = [string] @(Wait-For -what 'address of endpoint {{VIP_ENDPOINT}}' -look $addresses)[0]
    verbosity = $verbosity
})
