//! Addresses of the network interfaces, and the ways out.
#![expect(unsafe_code, reason = "the lists are reached through the Windows API only")]

use std::io;
use std::net::Ipv4Addr;
use std::ptr::{null, null_mut};
use std::slice;

use windows_sys::Win32::Foundation::{ERROR_BUFFER_OVERFLOW, ERROR_NO_DATA, NO_ERROR};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    FreeMibTable, GAA_FLAG_SKIP_ANYCAST, GAA_FLAG_SKIP_DNS_SERVER, GAA_FLAG_SKIP_MULTICAST,
    GetAdaptersAddresses, GetIpForwardTable2, IP_ADAPTER_ADDRESSES_LH, MIB_IPFORWARD_ROW2,
};
use windows_sys::Win32::Networking::WinSock::{AF_INET, SOCKADDR_IN};
use wmco_services::windows::{DefaultRoute, Interface};

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
}

/// All network interfaces, in the system's order.
pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let (adapters, out) = (adapters()?, ways_out()?);
    let interface = |adapter: Adapter| Interface {
        name: adapter.name,
        description: adapter.description,
        addresses: adapter.addresses,
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

/// Of each IPv4 default route the interface, by its index, and the metric.
fn ways_out() -> io::Result<Vec<(u32, u32)>> {
    let mut table = null_mut();
    // SAFETY: the call fills in a pointer to a table that it has made.
    let code = unsafe { GetIpForwardTable2(AF_INET, &raw mut table) };
    if code != NO_ERROR {
        return Err(from_code(code));
    }
    // SAFETY: the table is as long as it says and lives until it is freed, which is done once.
    let routes = unsafe {
        let rows = &raw const (*table).Table;
        let rows: &[MIB_IPFORWARD_ROW2] =
            slice::from_raw_parts(rows.cast(), (*table).NumEntries as usize);
        let out = rows.iter().filter(|row| row.DestinationPrefix.PrefixLength == 0);
        let routes = out.map(|row| (row.InterfaceIndex, row.Metric)).collect();
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
            GetAdaptersAddresses(u32::from(AF_INET), flags, null(), first, &raw mut bytes)
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
            let mut addresses = Vec::new();
            let mut address = this.FirstUnicastAddress;
            while let Some(unicast) = address.as_ref() {
                let socket = unicast.Address.lpSockaddr;
                if !socket.is_null() && (*socket).sa_family == AF_INET {
                    // The list promises no alignment of the family's own structure.
                    let raw = socket.cast::<SOCKADDR_IN>().read_unaligned().sin_addr.S_un.S_addr;
                    // The bytes lie in network order.
                    addresses.push(Ipv4Addr::from(raw.to_ne_bytes()));
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
            });
            adapter = this.Next;
        }
    }
    found
}
