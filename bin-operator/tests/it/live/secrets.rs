//! A full join at trace level leaves no secret in the log.

use std::io;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::progress::Progress;
use tokio_util::sync::CancellationToken;
use wmco_core::names::objects;

use super::scenery::{addresses, is_finished, nodes, settled, stage};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One thread, so that everything logs into the subscriber of this thread.
#[test]
fn nothing_secret_is_logged_at_trace_level() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // With more than one, threads of other tests do not decide alone what is of no interest to any.
    let _other = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let secrets = tracing::subscriber::with_default(subscriber, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stage = stage(1).await;
            let progress = Progress::new();
            let all = addresses(1);
            let joined = settled(&progress, &all);
            let stop = CancellationToken::new();
            let operator = stage.operate_here(progress.clone(), stop.clone());
            let watch = async {
                joined.await;
                stop.cancel();
            };
            let (result, ()) = tokio::join!(operator, watch);
            result.unwrap();
            assert!(is_finished(&nodes(&stage)[0]));
            let mut secrets = vec![("the private key", stage.key.expose().to_vec())];
            let named = [
                ("WICD's token", stage.namespace(), objects::WICD, objects::TOKEN_KEY),
                (
                    "the bootstrap token",
                    objects::BOOTSTRAPPER_NAMESPACE,
                    objects::BOOTSTRAPPER_SECRET,
                    objects::TOKEN_KEY,
                ),
                (
                    "the exporter's key",
                    stage.namespace(),
                    objects::TLS_SECRET,
                    objects::TLS_PRIVATE_KEY_KEY,
                ),
            ];
            for (what, namespace, name, key) in named {
                let secret = stage.cluster.object("", "secrets", namespace, name).unwrap();
                let text = secret["data"][key].as_str().unwrap();
                secrets.push((what, BASE64_STANDARD.decode(text).unwrap()));
            }
            stage.shutdown().await;
            secrets
        })
    });
    let log = log.0.lock().unwrap();
    let has = |part: &[u8]| log.windows(part.len()).any(|window| window == part);
    assert!(has(b"TRACE") && has(b"probe-with-ours"), "the log has the whole join");
    for (what, secret) in secrets {
        // Any line of it counts, in clear or as it stands in an object.
        for line in secret.split(|byte| *byte == b'\n').filter(|line| line.len() >= 16) {
            if line.starts_with(b"-----") {
                continue;
            }
            assert!(!has(line), "{what} is in the log");
            assert!(!has(BASE64_STANDARD.encode(line).as_bytes()), "{what} is in the log, encoded");
        }
        let encoded = BASE64_STANDARD.encode(&secret);
        let start = encoded.get(..40).unwrap_or(&encoded);
        assert!(!has(start.as_bytes()), "{what} is in the log as its object has it");
    }
}
