//! Addresses of the network interfaces.
#![expect(unsafe_code, reason = "the list is chained by pointers")]

use std::io;
use std::net::Ipv4Addr;
use std::ptr::null;

use windows_sys::Win32::Foundation::{ERROR_BUFFER_OVERFLOW, ERROR_NO_DATA, NO_ERROR};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GAA_FLAG_SKIP_ANYCAST, GAA_FLAG_SKIP_DNS_SERVER, GAA_FLAG_SKIP_MULTICAST, GetAdaptersAddresses,
    IP_ADAPTER_ADDRESSES_LH,
};
use windows_sys::Win32::Networking::WinSock::{AF_INET, SOCKADDR_IN};

use super::failure::from_code;

/// Size of the first attempt; Windows recommends it.
const FIRST_BYTES: u32 = 15 * 1024;

/// Attempts, since interfaces may come in between.
const ATTEMPTS: usize = 5;

/// IPv4 addresses of all interfaces but loopback, in the system's order.
pub(super) fn ipv4() -> io::Result<Vec<Ipv4Addr>> {
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
unsafe fn read(mut adapter: *const IP_ADAPTER_ADDRESSES_LH) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    // SAFETY: every pointer comes from the chain that the caller promises.
    unsafe {
        while let Some(this) = adapter.as_ref() {
            let mut address = this.FirstUnicastAddress;
            while let Some(unicast) = address.as_ref() {
                let socket = unicast.Address.lpSockaddr;
                if !socket.is_null() && (*socket).sa_family == AF_INET {
                    // The list promises no alignment of the family's own structure.
                    let raw = socket.cast::<SOCKADDR_IN>().read_unaligned().sin_addr.S_un.S_addr;
                    // The bytes lie in network order.
                    found.push(Ipv4Addr::from(raw.to_ne_bytes()));
                }
                address = unicast.Next;
            }
            adapter = this.Next;
        }
    }
    found.retain(|address| !address.is_loopback());
    found
}
