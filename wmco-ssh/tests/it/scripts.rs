//! Shell scripts that stand in for the agent on a POSIX server.

use crate::backend::{Does, HOST_NAME};
use crate::sshd::Sshd;

/// Returns a complete probe of a host that is not configured yet.
pub(crate) fn probe() -> String {
    format!(
        r#"{{"wicd":"probed","protocol":1,"agent":{{"version":"1.0.0","sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","installed":null}},"hostName":"{HOST_NAME}","osBuild":"10.0.20348","addresses":["10.0.0.7"],"containers":"enabled","reboot":[],"bootId":"b","files":{{}},"services":{{}},"environment":{{}},"networks":[],"directories":[],"root":"closed","daemonCertificateValid":false,"state":null}}"#
    )
}

pub(crate) fn script(server: &Sshd, does: Does) -> String {
    let probe = probe();
    match does {
        Does::Work => work(server, &probe),
        Does::OtherProtocol(number) => {
            let other = probe.replace(r#""protocol":1"#, &format!(r#""protocol":{number}"#));
            format!("echo '{other}'")
        }
        Does::Fail(code) => format!("echo something went wrong >&2; exit {code}"),
        Does::Garbage => "echo 0123 not what you asked for".to_owned(),
        Does::Nothing => "exit 0".to_owned(),
        Does::Talk(bytes) => format!("yes | head -c {bytes}"),
        // Ends when its standard error is closed.
        Does::Hang => "trap '' PIPE\nwhile echo x >&2; do sleep 0.05; done".to_owned(),
    }
}

/// Reads and removes the plan as an agent does; a restart only ends the connection.
fn work(server: &Sshd, probe: &str) -> String {
    let staging = format!("{}/C:/k/staging", server.root().display());
    let done = r#"{"wicd":"started","step":0}
{"wicd":"done","step":0,"changed":true}"#;
    format!(
        "case \"$1\" in\n\
         probe) echo Welcome; echo '{probe}';;\n\
         apply) plan='{staging}/'\"${{2#C:kstaging}}\"\n\
         steps=$(cat \"$plan\") || exit 1\n\
         rm \"$plan\"\n\
         echo '{done}'\n\
         case \"$steps\" in *'\"restart\"'*) sleep 0.3; kill -9 $PPID; exit 1;; esac\n\
         echo '{probe}';;\n\
         *) exit 2;;\n\
         esac"
    )
}
