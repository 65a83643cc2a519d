//! The machine itself.
#![expect(unsafe_code, reason = "the computer's name is reached through the Windows API only")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use jiff::SignedDuration;
use windows_sys::Win32::Foundation::ERROR_MORE_DATA;
use windows_sys::Win32::Security::{
    CheckTokenMembership, CreateWellKnownSid, SECURITY_MAX_SID_SIZE, WinBuiltinAdministratorsSid,
};
use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;
use windows_sys::Win32::System::SystemInformation::{
    ComputerNamePhysicalDnsFullyQualified, ComputerNamePhysicalDnsHostname, GetComputerNameExW,
    SetComputerNameExW,
};
use winreg::RegKey;
use winreg::enums::HKEY_LOCAL_MACHINE;
use wmco_core::names::host;
use wmco_core::protocol::{FeatureState, RebootReason};
use wmco_core::winpath::WindowsPath;
use wmco_services::windows::{
    DefaultRoute, HttpAnswer, HttpRequest, Interface, Machine, Route, ScriptOutput, Wait,
    WindowsError,
};

use super::failure::is;
use super::text::{narrow, wide};
use super::{addresses, boot, hns, processes, programs};
use crate::{dism, http};

/// Looks at a feature; usually two seconds.
const LOOK_AT_FEATURE: SignedDuration = SignedDuration::from_mins(1);

/// Switches a feature on. Source: `wmco_core::limits::APPLY` has to be longer.
const ENABLE_FEATURE: SignedDuration = SignedDuration::from_mins(12);

/// Orders a restart.
const ORDER_RESTART: SignedDuration = SignedDuration::from_secs(30);

/// Seconds between the order and the restart, in which the report leaves the host.
const RESTART_DELAY_SECONDS: &str = "3";

/// This machine.
#[derive(Default)]
pub(super) struct ThisMachine {
    /// The containers feature, once known: asking takes seconds, and one run asks twice.
    containers: Mutex<Option<FeatureState>>,
}

fn failed(what: &str) -> impl Fn(io::Error) -> WindowsError + use<'_> {
    move |error| WindowsError::other(what, error)
}

/// What Windows calls itself.
const VERSION_KEY: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// A text value below `HKEY_LOCAL_MACHINE`.
fn registry_text(key: &str, name: &str) -> io::Result<String> {
    RegKey::predef(HKEY_LOCAL_MACHINE).open_subkey(key)?.get_value(name)
}

/// A number below `HKEY_LOCAL_MACHINE`.
fn registry_number(key: &str, name: &str) -> io::Result<u32> {
    RegKey::predef(HKEY_LOCAL_MACHINE).open_subkey(key)?.get_value(name)
}

fn dism(arguments: &[&str], limit: SignedDuration) -> Result<ScriptOutput, WindowsError> {
    let feature = format!("/FeatureName:{}", host::CONTAINERS_FEATURE);
    let mut all = vec!["/Online", "/English", feature.as_str()];
    all.extend(arguments);
    programs::run("dism.exe", &all, Wait::at_most(limit))
}

/// What a program said that did not do what it should, in one line.
fn complaint(output: &ScriptOutput) -> io::Error {
    let said = output.stdout.lines().chain(output.stderr.lines());
    let said: Vec<&str> = said.map(str::trim).filter(|line| !line.is_empty()).collect();
    io::Error::other(format!("exit code {}: {}", output.code, said.join(" ")))
}

impl Machine for ThisMachine {
    fn host_name(&self) -> Result<String, WindowsError> {
        let mut name = vec![0; 256];
        loop {
            let mut units = u32::try_from(name.len()).unwrap_or(u32::MAX);
            // SAFETY: the buffer is as long as `units` says.
            let ok = unsafe {
                GetComputerNameExW(
                    ComputerNamePhysicalDnsFullyQualified,
                    name.as_mut_ptr(),
                    &raw mut units,
                )
            };
            if ok != 0 {
                return Ok(narrow(&name));
            }
            let error = io::Error::last_os_error();
            if !is(&error, ERROR_MORE_DATA) || units as usize <= name.len() {
                return Err(failed("read the computer's name")(error));
            }
            name.resize(units as usize, 0);
        }
    }

    fn os_build(&self) -> Result<String, WindowsError> {
        let version = || -> io::Result<String> {
            let build = registry_text(VERSION_KEY, "CurrentBuildNumber")?;
            let major = registry_number(VERSION_KEY, "CurrentMajorVersionNumber");
            let minor = registry_number(VERSION_KEY, "CurrentMinorVersionNumber");
            match (major, minor) {
                (Ok(major), Ok(minor)) => Ok(format!("{major}.{minor}.{build}")),
                // Before Windows 10 there was only the text.
                _ => Ok(format!("{}.{build}", registry_text(VERSION_KEY, "CurrentVersion")?)),
            }
        };
        version().map_err(failed("read the Windows build"))
    }

    fn installation(&self) -> Result<String, WindowsError> {
        registry_text(VERSION_KEY, "InstallationType")
            .map_err(failed("read the kind of the Windows installation"))
    }

    fn interfaces(&self) -> Result<Vec<Interface>, WindowsError> {
        addresses::interfaces().map_err(failed("list the network interfaces"))
    }

    fn firmware(&self) -> Result<String, WindowsError> {
        const KEY: &str = r"HARDWARE\DESCRIPTION\System\BIOS";
        // What is not there says nothing; machines of Amazon with Xen say so in the version alone.
        let makers = ["SystemManufacturer", "BIOSVendor", "BIOSVersion"];
        let makers = makers.iter().filter_map(|name| registry_text(KEY, name).ok());
        Ok(makers.collect::<Vec<_>>().join(", "))
    }

    fn default_routes(&self) -> Result<Vec<DefaultRoute>, WindowsError> {
        addresses::default_routes().map_err(failed("list the network routes"))
    }

    fn free_bytes(&self, folder: &WindowsPath) -> Result<u64, WindowsError> {
        // The folder itself may not be there yet.
        let drive = folder.as_str().get(..2).unwrap_or_default();
        let root = wide(format!("{drive}\\"));
        let mut free = 0;
        // SAFETY: the path ends with a zero, and the one number that is asked for is ours.
        let ok = unsafe {
            GetDiskFreeSpaceExW(root.as_ptr(), &raw mut free, ptr::null_mut(), ptr::null_mut())
        };
        if ok == 0 {
            return Err(failed("look at the free disk")(io::Error::last_os_error()));
        }
        Ok(free)
    }

    fn is_administrator(&self) -> Result<bool, WindowsError> {
        let mut sid = [0_u8; SECURITY_MAX_SID_SIZE as usize];
        let (mut size, mut is_member) = (SECURITY_MAX_SID_SIZE, 0);
        let sid = sid.as_mut_ptr().cast();
        // SAFETY: the identifier has room for any of them, and all that is written is ours.
        let ok = unsafe {
            CreateWellKnownSid(WinBuiltinAdministratorsSid, ptr::null_mut(), sid, &raw mut size)
                != 0
                && CheckTokenMembership(ptr::null_mut(), sid, &raw mut is_member) != 0
        };
        if ok {
            Ok(is_member != 0)
        } else {
            Err(failed("look at the rights of this program")(io::Error::last_os_error()))
        }
    }

    fn is_listening(&self, port: u16) -> Result<bool, WindowsError> {
        // Nobody connects to it, and it is given back at once.
        match TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)) {
            Ok(_) => Ok(false),
            // What Windows says where another program has asked to be the only one.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
                ) =>
            {
                Ok(true)
            }
            Err(error) => Err(failed("look at a port")(error)),
        }
    }

    fn routes(&self) -> Result<Vec<Route>, WindowsError> {
        addresses::routes().map_err(failed("list the network routes"))
    }

    fn add_host_route(&self, to: Ipv4Addr, via: &Route) -> Result<(), WindowsError> {
        addresses::add_host_route(to, via)
            .map_err(|error| WindowsError::other(format!("add a route to {to}"), error))
    }

    fn containers(&self) -> Result<FeatureState, WindowsError> {
        let mut known = self.containers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = *known {
            return Ok(state);
        }
        let output = dism(&["/Get-FeatureInfo"], LOOK_AT_FEATURE)?;
        let state = dism::feature_state(&output.stdout).ok_or_else(|| {
            failed("learn the state of the containers feature")(complaint(&output))
        })?;
        *known = Some(state);
        Ok(state)
    }

    fn enable_containers(&self) -> Result<(), WindowsError> {
        let output = dism(&["/Enable-Feature", "/All", "/NoRestart", "/Quiet"], ENABLE_FEATURE)?;
        *self.containers.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if dism::ENABLED_CODES.contains(&output.code) {
            Ok(())
        } else {
            Err(failed("switch the containers feature on")(complaint(&output)))
        }
    }

    fn rename(&self, name: &str) -> Result<(), WindowsError> {
        let text = wide(name);
        // SAFETY: the name ends with a zero.
        let ok = unsafe { SetComputerNameExW(ComputerNamePhysicalDnsHostname, text.as_ptr()) };
        if ok == 0 {
            return Err(failed("rename the computer")(io::Error::last_os_error()));
        }
        Ok(())
    }

    fn restart(&self) -> Result<(), WindowsError> {
        // `p:2:4` is planned, operating system, reconfiguration.
        let arguments = ["/r", "/f", "/t", RESTART_DELAY_SECONDS, "/d", "p:2:4"];
        let output = programs::run("shutdown.exe", &arguments, Wait::at_most(ORDER_RESTART))?;
        if output.code == 0 { Ok(()) } else { Err(failed("order a restart")(complaint(&output))) }
    }

    fn boot_id(&self) -> Result<String, WindowsError> {
        boot::id().map_err(failed("read the boot identity"))
    }

    fn pending_reboot(&self) -> Result<BTreeSet<RebootReason>, WindowsError> {
        const NAMES: &str = r"SYSTEM\CurrentControlSet\Control\ComputerName";
        const NETWORK: &str = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
        let mut reasons = BTreeSet::new();
        if self.containers()? == FeatureState::Pending {
            reasons.insert(RebootReason::Feature);
        }
        // What is not there says nothing.
        let differ = |(now_key, now): (&str, &str), (next_key, next): (&str, &str)| {
            let pair = (registry_text(now_key, now), registry_text(next_key, next));
            matches!(pair, (Ok(now), Ok(next)) if !now.eq_ignore_ascii_case(&next))
        };
        let active = format!(r"{NAMES}\ActiveComputerName");
        let chosen = format!(r"{NAMES}\ComputerName");
        if differ((&active, "ComputerName"), (&chosen, "ComputerName"))
            || differ((NETWORK, "Hostname"), (NETWORK, "NV Hostname"))
        {
            reasons.insert(RebootReason::Rename);
        }
        Ok(reasons)
    }

    fn networks(&self) -> Result<BTreeSet<String>, WindowsError> {
        Ok(hns::networks()?.into_iter().map(|network| network.name).collect())
    }

    fn remove_network(&self, name: &str) -> Result<bool, WindowsError> {
        hns::remove(name)
    }

    fn end_processes(&self, programs: &BTreeSet<WindowsPath>) -> Result<usize, WindowsError> {
        let names = || programs.iter().map(WindowsPath::file_name).collect::<Vec<_>>().join(", ");
        processes::end_all(programs)
            .map_err(|error| WindowsError::other(format!("end processes of {}", names()), error))
    }

    fn http(
        &self,
        request: &HttpRequest<'_>,
        limit: SignedDuration,
    ) -> Result<Option<HttpAnswer>, WindowsError> {
        http::ask(request, limit)
            .map_err(|bad| WindowsError::other(format!("ask {request:?}"), bad))
    }

    fn executable(&self) -> Result<Option<WindowsPath>, WindowsError> {
        let path = own_path()?;
        let text = path.to_string_lossy();
        // A user's folder may have any name, and the agent is brought to one.
        Ok(text.strip_prefix(r"\\?\").unwrap_or(&text).parse().ok())
    }

    fn open_executable(&self) -> Result<Box<dyn Read + Send>, WindowsError> {
        let file = File::open(own_path()?).map_err(failed("read the running program"))?;
        Ok(Box::new(file))
    }
}

fn own_path() -> Result<PathBuf, WindowsError> {
    std::env::current_exe().map_err(failed("find the running program"))
}
