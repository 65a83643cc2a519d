//! A property of services ConfigMaps.

use std::collections::BTreeSet;

use wmco_core::names::objects::{ENVIRONMENT_KEY, FILES_KEY, SERVICES_KEY, WATCHED_KEY};
use wmco_core::protocol::ServicesData;
use wmco_core::text::chain;
use wmco_services::manifest::{Manifest, review};

/// Separates the values of the keys in an input.
const BETWEEN: char = '\0';

/// A ConfigMap is parsed exactly if it has no problems; a rendered manifest parses to the same; services start after
/// their dependencies.
pub(crate) fn a_manifest_reads_as_it_was_written(text: &str) {
    let keys = [SERVICES_KEY, FILES_KEY, ENVIRONMENT_KEY, WATCHED_KEY];
    let values = text.split(BETWEEN).map(str::to_owned);
    let data = ServicesData(keys.map(str::to_owned).into_iter().zip(values).collect());
    let problems = review(&data).problems;
    match Manifest::parse(&data) {
        Ok(manifest) => {
            assert!(problems.is_empty(), "{:?}", problems.first().map(|problem| &problem.at));
            let again = Manifest::parse(&manifest.render()).expect("it was a manifest");
            assert!(again == manifest, "{text}");
            let mut started = BTreeSet::new();
            for service in manifest.start_order() {
                let ours = |need| manifest.service(need).is_some();
                assert!(
                    service
                        .dependencies
                        .iter()
                        .filter(|need| ours(need))
                        .all(|n| started.contains(n)),
                    "{} starts too early",
                    service.name
                );
                started.insert(&service.name);
            }
            assert_eq!(started.len(), manifest.services().len());
        }
        Err(error) => {
            assert!(!problems.is_empty(), "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error}");
            for problem in problems {
                let text = chain(&problem.error);
                assert!(!text.contains(char::is_control), "{text}");
            }
        }
    }
}
