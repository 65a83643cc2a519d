//! PowerShell scripts that the manifest holds verbatim, as the wire format demands.
//!
//! The operator writes them ([`generate`](crate::generate), a feature), and [`services`](crate::services) answers them
//! without running PowerShell.

use std::net::Ipv4Addr;

/// Address of the metadata service. Source: AWS documentation, "Use the Instance Metadata Service".
pub const METADATA_SERVICE: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

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

/// Prints the host name under which AWS knows the machine.
pub const AWS_HOST_NAME: &str = "Invoke-RestMethod -UseBasicParsing -Uri http://169.254.169.254/latest/meta-data/local-hostname";
