//! Does at the host what tests ask for, one JSON line each.

#[cfg(windows)]
fn main() -> anyhow::Result<()> {
    use std::io::{BufRead as _, Write as _};

    use wicd_wine::hands::Answer;

    for line in std::io::stdin().lock().lines() {
        let answer = hands::obey(serde_json::from_str(&line?)?)
            .unwrap_or_else(|error| Answer::Failed(format!("{error:#}")));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
        out.flush()?;
    }
    Ok(())
}

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
mod hands {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    use std::io::{self, ErrorKind};

    use anyhow::Context as _;
    use schannel::cert_store::CertStore;
    use wicd_wine::hands::{Answer, Config, Order, Service, Start, State};
    use windows_service::service::{
        ServiceAccess, ServiceDependency, ServiceErrorControl, ServiceExitCode, ServiceInfo,
        ServiceStartType, ServiceState, ServiceType,
    };
    use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};
    use winreg::enums::{HKEY_LOCAL_MACHINE, KEY_SET_VALUE, REG_SZ};
    use winreg::types::FromRegValue;
    use winreg::{HKEY, RegKey};

    const SERVICES: &str = r"SYSTEM\CurrentControlSet\Services";
    const VARIABLES: &str = r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment";
    const ROOTS: &str = r"SOFTWARE\Microsoft\SystemCertificates\Root\Certificates";
    /// Number of `ERROR_SERVICE_DOES_NOT_EXIST`.
    const SERVICE_DOES_NOT_EXIST: i32 = 1060;
    /// Most bytes of a value that are shown. Certificates are longer and many.
    const LONG: usize = 64;
    const MACHINE: HKEY = HKEY_LOCAL_MACHINE;

    /// Does one thing.
    pub(super) fn obey(order: Order) -> anyhow::Result<Answer> {
        match order {
            Order::Services => return Ok(Answer::Services(services()?)),
            Order::Registry => return registry().map(Answer::Registry),
            Order::Create { name, config } => create(&name, &config)?,
            Order::Command { name, command } => {
                change(&name, |info| {
                    let mut words = command.split(' ');
                    info.executable_path = words.next().unwrap_or_default().into();
                    info.launch_arguments = words.map(OsString::from).collect();
                })?;
            }
            Order::Show { name, shown } => change(&name, |info| {
                info.display_name = shown.into();
                info.error_control = ServiceErrorControl::Normal;
            })?,
            Order::Variable { name, value: Some(value) } => variables()?.set_value(name, &value)?,
            Order::Variable { name, value: None } => variables()?.delete_value(name)?,
            Order::Number { variable } => variables()?.set_value(variable, &1_u32)?,
            Order::Start { name } => open(&name, ServiceAccess::START)?.start::<OsString>(&[])?,
            Order::Stop { name } => {
                open(&name, ServiceAccess::STOP)?.stop()?;
            }
            Order::Delete { name } => open(&name, ServiceAccess::DELETE)?.delete()?,
        }
        Ok(Answer::Done)
    }

    /// The system-wide variables.
    fn variables() -> io::Result<RegKey> {
        RegKey::predef(MACHINE).open_subkey_with_flags(VARIABLES, KEY_SET_VALUE)
    }

    fn open(
        name: &str,
        rights: ServiceAccess,
    ) -> anyhow::Result<windows_service::service::Service> {
        let manager = ServiceManager::local_computer(None::<&str>, ServiceManagerAccess::CONNECT)?;
        manager.open_service(name, rights).with_context(|| format!("open {name}"))
    }

    /// Changes a service, otherwise as it is.
    fn change(name: &str, change: impl FnOnce(&mut ServiceInfo)) -> anyhow::Result<()> {
        let key = RegKey::predef(MACHINE).open_subkey(format!(r"{SERVICES}\{name}"))?;
        let config = Config {
            command: value(&key, "ImagePath")?.unwrap_or_default(),
            description: String::new(),
            dependencies: value(&key, "DependOnService")?.unwrap_or_default(),
            start: Start::Manual,
        };
        let mut info = info(name, &config);
        change(&mut info);
        Ok(open(name, ServiceAccess::CHANGE_CONFIG)?.change_config(&info)?)
    }

    fn create(name: &str, config: &Config) -> anyhow::Result<()> {
        let rights = ServiceManagerAccess::CREATE_SERVICE;
        let manager = ServiceManager::local_computer(None::<&str>, rights)?;
        let service = manager.create_service(&info(name, config), ServiceAccess::CHANGE_CONFIG)?;
        Ok(service.set_description(&config.description)?)
    }

    fn info(name: &str, config: &Config) -> ServiceInfo {
        let mut words = config.command.split(' ');
        let dependencies = config.dependencies.iter();
        ServiceInfo {
            name: name.into(),
            display_name: name.into(),
            service_type: ServiceType::OWN_PROCESS,
            start_type: match config.start {
                Start::Automatic => ServiceStartType::AutoStart,
                Start::Manual => ServiceStartType::OnDemand,
                Start::Disabled => ServiceStartType::Disabled,
            },
            error_control: ServiceErrorControl::Ignore,
            executable_path: words.next().unwrap_or_default().into(),
            launch_arguments: words.map(OsString::from).collect(),
            dependencies: dependencies.map(|n| ServiceDependency::Service(n.into())).collect(),
            account_name: None,
            account_password: None,
        }
    }

    /// What is in the registry, so that it does not depend on how the daemon reads it.
    fn services() -> anyhow::Result<Vec<Service>> {
        let all = RegKey::predef(MACHINE).open_subkey(SERVICES)?;
        let manager = ServiceManager::local_computer(None::<&str>, ServiceManagerAccess::CONNECT)?;
        let mut services = Vec::new();
        for name in all.enum_keys() {
            let name = name?;
            let key = all.open_subkey(&name)?;
            let Some(command) = value::<String>(&key, "ImagePath")? else { continue };
            let config = Config {
                command,
                description: value(&key, "Description")?.unwrap_or_default(),
                dependencies: value(&key, "DependOnService")?.unwrap_or_default(),
                start: match value::<u32>(&key, "Start")? {
                    Some(0..=2) => Start::Automatic,
                    Some(3) => Start::Manual,
                    Some(_) | None => Start::Disabled,
                },
            };
            let account = value(&key, "ObjectName")?.unwrap_or_default();
            let display_name = value(&key, "DisplayName")?.unwrap_or_else(|| name.clone());
            // Numbers of `SERVICE_WIN32_OWN_PROCESS` and `SERVICE_ERROR_IGNORE`.
            let own_process = value::<u32>(&key, "Type")? == Some(0x10);
            let errors_ignored = value::<u32>(&key, "ErrorControl")? == Some(0);
            let service = match manager.open_service(&name, ServiceAccess::QUERY_STATUS) {
                Ok(service) => service,
                // Drivers and what is half deleted have no state to ask for.
                Err(windows_service::Error::Winapi(error))
                    if error.raw_os_error() == Some(SERVICE_DOES_NOT_EXIST) =>
                {
                    continue;
                }
                Err(error) => return Err(error).with_context(|| format!("open {name}")),
            };
            let status = service.query_status()?;
            let (ServiceExitCode::Win32(exit_code) | ServiceExitCode::ServiceSpecific(exit_code)) =
                status.exit_code;
            let state = match status.current_state {
                ServiceState::Stopped => State::Stopped,
                ServiceState::StartPending => State::Starting,
                ServiceState::StopPending => State::Stopping,
                ServiceState::Running => State::Running,
                ServiceState::Paused
                | ServiceState::PausePending
                | ServiceState::ContinuePending => State::Paused,
            };
            let process = status.process_id;
            services.push(Service {
                name,
                config,
                account,
                display_name,
                own_process,
                errors_ignored,
                state,
                exit_code,
                process,
            });
        }
        Ok(services)
    }

    fn value<T: FromRegValue>(key: &RegKey, name: &str) -> io::Result<Option<T>> {
        match key.get_value(name) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn registry() -> anyhow::Result<BTreeMap<String, String>> {
        // Wine fills the store when it is opened for the first time.
        CertStore::open_local_machine("Root").context("open the trusted roots")?;
        let mut values = BTreeMap::new();
        for path in [SERVICES, VARIABLES, ROOTS] {
            collect(path, &mut values).with_context(|| format!("read {path}"))?;
        }
        Ok(values)
    }

    fn collect(path: &str, values: &mut BTreeMap<String, String>) -> io::Result<()> {
        let key = match RegKey::predef(MACHINE).open_subkey(path) {
            Ok(key) => key,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for value in key.enum_values() {
            let (name, value) = value?;
            let text = match value.vtype {
                REG_SZ => String::from_reg_value(&value)?,
                kind if value.bytes.len() > LONG => {
                    let mut digest = DefaultHasher::new();
                    value.bytes.hash(&mut digest);
                    format!("{kind:?} of {} bytes, {:x}", value.bytes.len(), digest.finish())
                }
                kind => format!("{kind:?} {:?}", value.bytes),
            };
            values.insert(format!(r"{path}\{name}"), text);
        }
        for below in key.enum_keys() {
            collect(&format!(r"{path}\{}", below?), values)?;
        }
        Ok(())
    }
}
