//! The operator against an API server that we did not write; see `support::story` for what happens.
//!
//! `make e2e` runs it, with `KUBECONFIG` or `KUBEBUILDER_ASSETS` set.

mod support;

use std::process::ExitCode;

use support::asked::{self, Asked};
use support::own_api::OwnApi;
use support::story::{self, Story};
use support::{Api, fitness};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "it talks to a person")]
#[tokio::main]
async fn main() -> ExitCode {
    let say = |line: &str| println!("{line}");
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn,kube_client=off".into());
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();
    let asked = match asked::asked(|name| std::env::var(name).ok()) {
        Ok(asked) => asked,
        Err(refusal) => {
            eprintln!("e2e: {refusal}");
            return ExitCode::from(2);
        }
    };
    match Box::pin(run(asked, &say)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("e2e failed: {}", bin_operator::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn run(asked: asked::Request, say: &dyn Fn(&str)) -> anyhow::Result<()> {
    let story = Story { hosts: asked.hosts, stop: stopped_by_signal() };
    match asked.api {
        Asked::Assets(folder) => {
            say(&format!("starts etcd and kube-apiserver of {}", folder.display()));
            let mut own = OwnApi::start(&folder).await?;
            let api = Api::connect(own.kubeconfig()?).await?;
            say(&api.to_string());
            fitness::supported(&api)?;
            let told = story::run(&api, Some(&own), &story, say).await;
            // What went wrong in the story may be no more than the end of a program.
            match (told, own.has_not_ended()) {
                (Err(error), Err(ended)) => Err(error.context(ended)),
                (told, ended) => told.map(drop).and(ended),
            }
        }
        Asked::Cluster { paths, any } => {
            let api = Api::connect(asked::kubeconfig(&paths)?).await?;
            say(&api.to_string());
            fitness::supported(&api)?;
            if !any {
                fitness::throw_away(&api).await?;
            }
            story::run(&api, None, &story, say).await.map(drop)
        }
    }
}

fn stopped_by_signal() -> CancellationToken {
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.cancel();
        }
    });
    stop
}
