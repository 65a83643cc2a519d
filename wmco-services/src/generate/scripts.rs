//! PowerShell that stands in the manifest word for word, as the wire format demands.

use wmco_core::names::platforms;

/// Prints the host's full name: its first label, and the primary DNS suffix if there is one.
pub const FULL_HOST_NAME: &str = "$output = Invoke-Expression 'ipconfig /all'; \
    $hostNameLine = ($output -split '`n') | Where-Object { $_ -match 'Host Name' }; \
    $dnsSuffixLine = ($output -split '`n') | Where-Object { $_ -match 'Primary Dns Suffix' }; \
    $hostName = ($hostNameLine -split ':')[1].Trim(); \
    $dnsSuffix = ($dnsSuffixLine -split ':')[1].Trim(); \
    if (-not $dnsSuffix) { return $hostName }; \
    $fqdn = $hostName + '.' + $dnsSuffix; return $fqdn";

/// Prints the address of the interface with the default route.
pub const NODE_IP: &str = "(Get-NetRoute -DestinationPrefix '0.0.0.0/0' | \
    Get-NetIpAddress -AddressFamily IPv4 -ifIndex {$_.ifIndex}[0]).IPAddress";

/// Prints the host name that AWS knows the machine by.
pub(crate) const AWS_HOST_NAME: &str = "Invoke-RestMethod -UseBasicParsing -Uri http://169.254.169.254/latest/meta-data/local-hostname";

/// Prints the host name that GCP knows the machine by, cut to what Windows takes.
const GCP_HOST_NAME: &str = r"C:\Temp\gcp-get-hostname.ps1";

/// The script that prints a host's name as its platform knows it, where that differs from what Windows
/// knows.
///
/// Source: `spec/services.md`, section 6.4.
pub(super) fn host_name(platform: &str) -> Option<&'static str> {
    match platform {
        platforms::AWS => Some(AWS_HOST_NAME),
        platforms::GCP => Some(GCP_HOST_NAME),
        platforms::VSPHERE => Some(FULL_HOST_NAME),
        _ => None,
    }
}
