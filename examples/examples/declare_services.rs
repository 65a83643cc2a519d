//! Declares two Windows services and a variable for a program without Kubernetes, on a host in memory, and prints the
//! plans and the final host.
//!
//! ```text
//! cargo run -p wmco-examples --example declare_services
//! ```
//!
//! On a real host, implement the traits of `wmco_services::windows` in place of `FakeWindows`.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::collections::BTreeMap;

use jiff::Timestamp;
use wmco_services::env;
use wmco_services::fake::FakeWindows;
use wmco_services::manifest::{Manifest, Parts, Service};
use wmco_services::owner::Owner;
use wmco_services::services::{self, Desired, Observed, Scope, ScriptResults};
use wmco_services::windows::{ServiceConfig, StartType, Windows};

fn main() -> anyhow::Result<()> {
    let host = FakeWindows::new("shop-1");
    someone_elses(&host)?;
    let owner = Owner::new("Managed by the shop:", r"C:\Shop".parse()?)?;

    host.files().make_directory(&owner.root)?;
    for program in ["web.exe", "store.exe"] {
        host.put_file(&owner.root.join(program)?, "MZ");
    }

    let both = manifest(vec![
        service("shop-web", r"C:\Shop\web.exe --port 8080", &["shop-store"])?,
        service("shop-store", r"C:\Shop\store.exe", &[])?,
    ])?;
    println!("-- the first time");
    bring_about(&host, &owner, &both)?;
    println!("-- once more");
    bring_about(&host, &owner, &both)?;
    println!("-- the web service is no longer declared");
    let store = manifest(vec![service("shop-store", r"C:\Shop\store.exe", &[])?])?;
    bring_about(&host, &owner, &store)?;

    println!("-- the host");
    for service in host.services().list()? {
        let ServiceConfig { command, description, .. } = &service.config;
        println!("{} is {:?}: {command} ({description})", service.name, service.state);
    }
    println!("SHOP_REGION={}", host.environment().get("SHOP_REGION")?.unwrap_or_default());
    Ok(())
}

/// Brings the host to the manifest's state.
fn bring_about(host: &FakeWindows, owner: &Owner, manifest: &Manifest) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let variables = env::reconcile(manifest, &env::observe(manifest, owner, host)?);
    print!("{variables}");
    env::execute(&variables, manifest, owner, host)?;

    let desired = Desired { manifest, scope: Scope::All, owner };
    let mut results = ScriptResults::new();
    let seen = host.services().list()?;
    let observed = Observed { services: &seen, node: None, results: &results };
    print!("{}", services::reconcile(desired, observed, now));
    let settled = services::settle(host, desired, None, &mut results, now)?;
    anyhow::ensure!(settled.failures.is_empty(), "a step failed: {:?}", settled.failures);
    println!("{}", if settled.changed { "changed" } else { "nothing to do" });
    Ok(())
}

fn manifest(services: Vec<Service>) -> anyhow::Result<Manifest> {
    let environment = BTreeMap::from([("SHOP_REGION".to_owned(), "north".to_owned())]);
    let watched = environment.keys().cloned().collect();
    Ok(Manifest::new(Parts { services, environment, watched, ..Parts::default() })?)
}

fn service(name: &str, command: &str, needs: &[&str]) -> anyhow::Result<Service> {
    let dependencies = needs.iter().map(|need| need.parse()).collect::<Result<_, _>>()?;
    Ok(Service { dependencies, ..Service::new(name.parse()?, command) })
}

/// Creates a service that is not declared here, and that stays unchanged.
fn someone_elses(host: &FakeWindows) -> anyhow::Result<()> {
    let config = ServiceConfig {
        command: r"C:\Other\backup.exe".to_owned(),
        description: "Backups".to_owned(),
        dependencies: Vec::new(),
        start: StartType::Automatic,
        recovery: None,
    };
    Ok(host.services().create(&"backup".parse()?, &config)?)
}
