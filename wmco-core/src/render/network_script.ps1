# Writes the CNI and kube-proxy configurations of this node. WICD runs it before kube-proxy is
# compared with what it should be, so every step looks first and changes only what differs.
param(
    [Parameter(Mandatory = $true)] [string] $hostnameOverride,
    [Parameter(Mandatory = $true)] [string] $clusterCIDR,
    [Parameter(Mandatory = $true)] [string] $kubeConfigPath,
    [Parameter(Mandatory = $true)] [string] $kubeProxyConfigPath,
    [Parameter(Mandatory = $true)] [int] $verbosity
)

$ErrorActionPreference = 'Stop'
Import-Module -Name '{{HNS_MODULE}}' -DisableNameChecking

# Gives the first result of $look, which is asked again each second, for 20 attempts at most.
function Wait-For([scriptblock] $look, [string] $what) {
    foreach ($attempt in 1..20) {
        try {
            $found = & $look | Select-Object -First 1
            if ($found) { return $found }
        } catch {
            Write-Host "attempt ${attempt}: $_"
        }
        Write-Host "attempt ${attempt}: no $what yet"
        Start-Sleep -Seconds 1
    }
    throw "cannot find $what"
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

$network = Wait-For -what 'HNS network with name {{OVERLAY_NETWORK}}' -look {
    Get-HnsNetwork | Where-Object { $_.Name -eq '{{OVERLAY_NETWORK}}' }
}

$cni = @'
{{CNI_CONFIG}}
'@
Set-TextIfDifferent -path '{{CNI_CONFIG_FILE}}' -text (Format-Template $cni @{
    subnet = [string] @($network.Subnets)[0].AddressPrefix
    managementAddress = [string] $network.ManagementIP
})

$endpoint = Get-HnsEndpoint | Where-Object { $_.Name -eq '{{VIP_ENDPOINT}}' } |
    Select-Object -First 1
if (-not $endpoint) {
    $endpoint = New-HnsEndpoint -NetworkId $network.ID -Name '{{VIP_ENDPOINT}}'
}

$sourceAddress = {
    Get-NetIPConfiguration -AllCompartments -All -Detailed |
        Where-Object { $_.NetAdapter -and $_.NetAdapter.LinkLayerAddress -eq $endpoint.MacAddress } |
        ForEach-Object { $_.IPv4Address } |
        ForEach-Object { ([string] $_.IPAddress).Trim() }
}
# An endpoint without an adapter is a new one, or one of a run that was cut short.
if (-not (& $sourceAddress)) {
    Attach-HnsHostEndpoint -EndpointID $endpoint.ID -CompartmentID 1
}

$kubeProxy = @'
{{KUBE_PROXY_CONFIG}}
'@
Set-TextIfDifferent -path $kubeProxyConfigPath -text (Format-Template $kubeProxy @{
    clusterCIDR = $clusterCIDR
    hostnameOverride = $hostnameOverride
    kubeConfigPath = $kubeConfigPath
    sourceVip = [string] (Wait-For -what 'address of endpoint {{VIP_ENDPOINT}}' -look $sourceAddress)
    verbosity = $verbosity
})
