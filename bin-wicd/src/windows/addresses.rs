//! Addresses of the network interfaces, and the ways out.
#![expect(unsafe_code, reason = "the lists are reached through the Windows API only")]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr::{null, null_mut};
use std::slice;

use windows_sys::Win32::Foundation::{
    ERROR_BUFFER_OVERFLOW, ERROR_NO_DATA, ERROR_OBJECT_ALREADY_EXISTS, NO_ERROR,
};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    CreateIpForwardEntry, FreeMibTable, GAA_FLAG_SKIP_ANYCAST, GAA_FLAG_SKIP_DNS_SERVER,
    GAA_FLAG_SKIP_MULTICAST, GetAdaptersAddresses, GetIpForwardTable2, IP_ADAPTER_ADDRESSES_LH,
    MIB_IPFORWARD_ROW2, MIB_IPFORWARDROW,
};
use windows_sys::Win32::Networking::WinSock::{
    AF_INET, AF_INET6, AF_UNSPEC, IpDadStateDuplicate, IpDadStateTentative, SOCKADDR_IN,
    SOCKADDR_IN6, SOCKADDR_INET,
};
use wmco_services::windows::{DefaultRoute, Interface, Route};

use super::failure::from_code;
use super::text::from_pointer;

/// Size of the first attempt; Windows recommends it.
const FIRST_BYTES: u32 = 15 * 1024;

/// Attempts, since interfaces may come in between.
const ATTEMPTS: usize = 5;

/// A network interface.
struct Adapter {
    index: u32,
    metric: u32,
    name: String,
    description: String,
    addresses: Vec<Ipv4Addr>,
    ipv6: Vec<Ipv6Addr>,
}

/// All network interfaces, in the system's order.
pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let (adapters, out) = (adapters()?, ways_out()?);
    let interface = |adapter: Adapter| Interface {
        name: adapter.name,
        description: adapter.description,
        addresses: adapter.addresses,
        ipv6: adapter.ipv6,
        leads_out: out.iter().any(|(index, _)| *index == adapter.index),
    };
    Ok(adapters.into_iter().map(interface).collect())
}

/// The IPv4 default routes.
pub(super) fn default_routes() -> io::Result<Vec<DefaultRoute>> {
    let adapters = adapters()?;
    let route = |(index, metric): (u32, u32)| {
        let adapter = adapters.iter().find(|adapter| adapter.index == index)?;
        Some(DefaultRoute {
            metric: metric.saturating_add(adapter.metric),
            addresses: adapter.addresses.clone(),
        })
    };
    Ok(ways_out()?.into_iter().filter_map(route).collect())
}

/// All IPv4 routes.
pub(super) fn routes() -> io::Result<Vec<Route>> {
    let adapters = adapters()?;
    let mut routes = table()?;
    for route in &mut routes {
        let adapter = adapters.iter().find(|adapter| adapter.index == route.interface);
        route.metric = route.metric.saturating_add(adapter.map_or(0, |adapter| adapter.metric));
    }
    Ok(routes)
}

/// Adds a route to one address that lasts until the next start.
pub(super) fn add_host_route(to: Ipv4Addr, via: &Route) -> io::Result<()> {
    /// Somebody who manages the network made it. Source: Windows documentation, `MIB_IPFORWARDROW`.
    const BY_MANAGEMENT: u32 = 3;
    /// Its next hop is not its destination.
    const INDIRECT: u32 = 4;
    let raw = |address: Ipv4Addr| u32::from_ne_bytes(address.octets());
    // The older call: Wine has no other, and here it does the same. Its metric includes the interface's.
    let mut row = MIB_IPFORWARDROW {
        dwForwardDest: raw(to),
        dwForwardMask: u32::MAX,
        dwForwardNextHop: raw(via.gateway),
        dwForwardIfIndex: via.interface,
        dwForwardMetric1: via.metric,
        ..MIB_IPFORWARDROW::default()
    };
    row.Anonymous1.dwForwardType = INDIRECT;
    row.Anonymous2.dwForwardProto = BY_MANAGEMENT;
    // SAFETY: the row is a whole one and lives during the call.
    match unsafe { CreateIpForwardEntry(&raw const row) } {
        NO_ERROR | ERROR_OBJECT_ALREADY_EXISTS => Ok(()),
        code => Err(from_code(code)),
    }
}

/// Of each IPv4 default route the interface, by its index, and the metric.
fn ways_out() -> io::Result<Vec<(u32, u32)>> {
    let out = table()?.into_iter().filter(|route| route.prefix == 0);
    Ok(out.map(|route| (route.interface, route.metric)).collect())
}

/// All IPv4 routes; the metric is the route's alone.
fn table() -> io::Result<Vec<Route>> {
    let mut table = null_mut();
    // SAFETY: the call fills in a pointer to a table that it has made.
    let code = unsafe { GetIpForwardTable2(AF_INET, &raw mut table) };
    if code != NO_ERROR {
        return Err(from_code(code));
    }
    // SAFETY: the table is as long as it says and lives until it is freed, which is done once. All addresses
    // in it are of the family that was asked for.
    let routes = unsafe {
        let rows = &raw const (*table).Table;
        let rows: &[MIB_IPFORWARD_ROW2] =
            slice::from_raw_parts(rows.cast(), (*table).NumEntries as usize);
        let address = |of: &SOCKADDR_INET| {
            // The bytes lie in network order.
            Ipv4Addr::from(of.Ipv4.sin_addr.S_un.S_addr.to_ne_bytes())
        };
        let route = |row: &MIB_IPFORWARD_ROW2| Route {
            destination: address(&row.DestinationPrefix.Prefix),
            prefix: row.DestinationPrefix.PrefixLength,
            gateway: address(&row.NextHop),
            interface: row.InterfaceIndex,
            metric: row.Metric,
        };
        let routes = rows.iter().map(route).collect();
        FreeMibTable(table.cast());
        routes
    };
    Ok(routes)
}

/// All network interfaces, in the system's order.
fn adapters() -> io::Result<Vec<Adapter>> {
    let flags = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER;
    let mut bytes = FIRST_BYTES;
    for _ in 0..ATTEMPTS {
        // Of 64-bit units, so that it is aligned for the structures.
        let mut buffer = vec![0_u64; (bytes as usize).div_ceil(8)];
        let first = buffer.as_mut_ptr().cast::<IP_ADAPTER_ADDRESSES_LH>();
        // SAFETY: the buffer has at least as many bytes as `bytes` says.
        let code = unsafe {
            GetAdaptersAddresses(u32::from(AF_UNSPEC), flags, null(), first, &raw mut bytes)
        };
        match code {
            // SAFETY: the call has filled the buffer with a chain that ends with a null pointer.
            NO_ERROR => return Ok(unsafe { read(first) }),
            ERROR_NO_DATA => return Ok(Vec::new()),
            ERROR_BUFFER_OVERFLOW => {}
            code => return Err(from_code(code)),
        }
    }
    Err(from_code(ERROR_BUFFER_OVERFLOW))
}

/// # Safety
/// `adapter` is null or starts a chain that [`GetAdaptersAddresses`] made and that still lives.
unsafe fn read(mut adapter: *const IP_ADAPTER_ADDRESSES_LH) -> Vec<Adapter> {
    let mut found = Vec::new();
    // SAFETY: every pointer comes from the chain that the caller promises.
    unsafe {
        while let Some(this) = adapter.as_ref() {
            let (mut addresses, mut ipv6) = (Vec::new(), Vec::new());
            let mut address = this.FirstUnicastAddress;
            while let Some(unicast) = address.as_ref() {
                let socket = unicast.Address.lpSockaddr;
                let family = (!socket.is_null()).then(|| (*socket).sa_family);
                // The list promises no alignment of the family's own structure.
                if family == Some(AF_INET) {
                    let raw = socket.cast::<SOCKADDR_IN>().read_unaligned().sin_addr.S_un.S_addr;
                    // The bytes lie in network order.
                    addresses.push(Ipv4Addr::from(raw.to_ne_bytes()));
                } else if family == Some(AF_INET6)
                    && ![IpDadStateTentative, IpDadStateDuplicate].contains(&unicast.DadState)
                {
                    let raw = socket.cast::<SOCKADDR_IN6>().read_unaligned().sin6_addr.u.Byte;
                    ipv6.push(Ipv6Addr::from(raw));
                }
                address = unicast.Next;
            }
            let index = this.Anonymous1.Anonymous.IfIndex;
            found.push(Adapter {
                index,
                metric: this.Ipv4Metric,
                name: from_pointer(this.FriendlyName),
                description: from_pointer(this.Description),
                addresses,
                ipv6,
            });
            adapter = this.Next;
        }
    }
    found
}
