//! A managed service: records how it was started and behaves as its settings say.

#[cfg(windows)]
fn main() -> anyhow::Result<()> {
    stub::run()
}

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
#[allow(unsafe_code, reason = "the entry point that windows-service generates")]
mod stub {
    use std::ffi::OsString;
    use std::fs::OpenOptions;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};
    use std::os::windows::fs::OpenOptionsExt as _;
    use std::path::Path;
    use std::process::Command;
    use std::sync::OnceLock;
    use std::sync::mpsc::{self, RecvTimeoutError, Sender};
    use std::time::Duration;

    use wicd_wine::FOLDER;
    use wicd_wine::journal::{self, Event};
    use wicd_wine::told::{self, Behaviour, Storm, WRAPPED};
    use windows_service::service::{
        ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus,
        ServiceType,
    };
    use windows_service::service_control_handler::{self, ServiceControlHandlerResult};
    use windows_service::{define_windows_service, service_dispatcher};

    define_windows_service!(entry, service_main);

    /// How long the manager is asked to wait for a state.
    const HINT: Duration = Duration::from_secs(1);

    /// Its name, and what ends it. Not with the handler, which the library drops at the first stop.
    static SERVICE: OnceLock<(String, Sender<()>)> = OnceLock::new();

    /// Pause between two looks at its settings.
    const LOOK: Duration = Duration::from_millis(100);

    pub(super) fn run() -> anyhow::Result<()> {
        while std::env::args().any(|word| word == WRAPPED) {
            std::thread::park();
        }
        // The name does not matter for a process with one service.
        Ok(service_dispatcher::start("", entry)?)
    }

    #[expect(clippy::needless_pass_by_value, reason = "the signature that the entry point calls")]
    fn service_main(arguments: Vec<OsString>) {
        let name = arguments.first().map(|name| name.to_string_lossy().into_owned());
        if let Err(error) = serve(&name.unwrap_or_default()) {
            // A service has nowhere to write to; the code is what the manager shows.
            eprintln!("{error:#}");
            std::process::exit(99);
        }
    }

    fn serve(name: &str) -> anyhow::Result<()> {
        journal::add(&Event::Started {
            service: name.to_owned(),
            words: std::env::args().collect(),
            variables: std::env::vars().collect(),
        })?;
        let file = format!("{name}.json");
        let told = move || told::read::<Behaviour>(Path::new(FOLDER), &file);
        let (end, ended) = mpsc::channel();
        let _ = SERVICE.set((name.to_owned(), end));
        let status = service_control_handler::register(name, control_arrived)?;
        let report = |state, accepts, code| {
            status.set_service_status(ServiceStatus {
                service_type: ServiceType::OWN_PROCESS,
                current_state: state,
                controls_accepted: accepts,
                exit_code: ServiceExitCode::Win32(code),
                checkpoint: 0,
                wait_hint: HINT,
                process_id: None,
            })
        };
        report(ServiceState::StartPending, ServiceControlAccept::empty(), 0)?;
        while told().hangs {
            std::thread::park_timeout(LOOK);
        }
        let behaviour = told();
        let wrapped = std::env::args().skip(1).find(|word| word.ends_with(".exe"));
        if let (true, Some(program)) = (behaviour.wraps, wrapped) {
            Command::new(program).arg(WRAPPED).spawn()?;
        }
        report(ServiceState::Running, ServiceControlAccept::STOP, 0)?;
        if let Some(storm) = behaviour.storm.clone() {
            let told = told.clone();
            std::thread::spawn(move || {
                while told().storm.is_some_and(|storm| storm.held_back) {
                    std::thread::park_timeout(LOOK);
                }
                write_log(&storm)
            });
        }
        if let Some(port) = behaviour.port {
            std::thread::spawn(move || tell_health(port, &told));
        }
        let life = behaviour.ends_after_ms.map_or(Duration::MAX, Duration::from_millis);
        let code = match ended.recv_timeout(life) {
            Err(RecvTimeoutError::Timeout) => behaviour.code,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => 0,
        };
        Ok(report(ServiceState::Stopped, ServiceControlAccept::empty(), code)?)
    }

    fn control_arrived(control: ServiceControl) -> ServiceControlHandlerResult {
        match control {
            ServiceControl::Stop => {
                let Some((service, end)) = SERVICE.get() else {
                    return ServiceControlHandlerResult::NotImplemented;
                };
                let _ = journal::add(&Event::StopAsked { service: service.to_owned() });
                let told: Behaviour = told::read(Path::new(FOLDER), &format!("{service}.json"));
                if !told.ignores_stop {
                    let _ = end.send(());
                }
                ServiceControlHandlerResult::NoError
            }
            ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
            _ => ServiceControlHandlerResult::NotImplemented,
        }
    }

    /// Writes a log as programs of Go do: at its end, and without a right for others to move it.
    fn write_log(storm: &Storm) -> std::io::Result<()> {
        const READ_AND_WRITE: u32 = 3;
        let mut options = OpenOptions::new();
        let mut log =
            options.append(true).create(true).share_mode(READ_AND_WRITE).open(&storm.log)?;
        for number in 0..storm.lines() {
            log.write_all(Storm::line(number).as_bytes())?;
            if number % Storm::BREATH == 0 {
                std::thread::park_timeout(Duration::from_millis(1));
            }
        }
        // The log may be cut just then, and the line with it. It stays open, as that of a service does.
        loop {
            writeln!(log, "{}", Storm::LAST)?;
            std::thread::park_timeout(HINT);
        }
    }

    /// Answers every request with the health of that moment.
    fn tell_health(port: u16, told: &dyn Fn() -> Behaviour) {
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) else { return };
        for mut stream in listener.incoming().flatten() {
            // A client whose request cannot be read has gone away, or asks again.
            let _ = stream.read(&mut [0; 1024]);
            let health = told().health;
            let _ = write!(stream, "HTTP/1.1 {health} \r\nContent-Length: 0\r\n\r\n");
        }
    }
}
