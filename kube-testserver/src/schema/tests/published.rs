//! The tables against the schemas that k8s-openapi makes from the published API definitions: the
//! same members with the same types, both ways.
//!
//! Numbers of protobuf and rules of merging do not stand in these schemas; the recorded requests of
//! a real server (`tests/vectors`) cover them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1 as admission;
use k8s_openapi::api::authentication::v1 as authentication;
use k8s_openapi::api::authorization::v1 as authorization;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::{Eviction, PodDisruptionBudget};
use k8s_openapi::api::{
    apps::v1 as apps, core::v1 as core, events::v1 as events, rbac::v1 as rbac,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Status};
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use super::super::{Message, SCHEMA, Type, kind, members, message};

/// Walks both sides from a kind and notes what differs.
struct Comparison {
    definitions: Map<String, Value>,
    compared: BTreeSet<&'static str>,
    differences: BTreeSet<String>,
}

impl Comparison {
    fn message(&mut self, ours: &'static Message, published: &Value) {
        if !self.compared.insert(ours.name) {
            return;
        }
        self.inlined(ours);
        let none = Map::new();
        let published = published["properties"].as_object().unwrap_or(&none).clone();
        let members = members(ours);
        for field in &members {
            let place = format!("{}.{}", ours.name, field.json);
            match published.get(field.json) {
                Some(schema) => self.value(&place, &field.ty, schema),
                None => drop(self.differences.insert(format!("{place} is not published"))),
            }
        }
        let known: BTreeSet<&str> = members.iter().map(|field| field.json).collect();
        // Of every kind; protobuf has them in its envelope.
        for name in published.keys().filter(|name| !["apiVersion", "kind"].contains(&name.as_str()))
        {
            if !known.contains(name.as_str()) {
                self.differences.insert(format!("{}.{name} is missing", ours.name));
            }
        }
    }

    /// Their members are compared as those of the message around them.
    fn inlined(&mut self, ours: &'static Message) {
        for field in ours.fields.iter().filter(|field| field.inline) {
            let Type::Message(name) = field.ty else { continue };
            self.compared.insert(name);
            self.inlined(message(name).unwrap());
        }
    }

    fn value(&mut self, place: &str, ours: &Type, published: &Value) {
        let named = |name| published["$ref"].as_str().is_some_and(|path| path.ends_with(name));
        let (quantity, int_or_string) = (named(".Quantity"), named(".IntOrString"));
        let published = self.resolved(published);
        let is = (published["type"].as_str(), published["format"].as_str());
        let fits = match ours {
            Type::Any | Type::Raw => true,
            Type::Message(name) => {
                self.message(message(name).unwrap(), &published);
                is.0 == Some("object")
            }
            Type::List(item) => {
                self.value(&format!("{place}[]"), item, &published["items"]);
                is.0 == Some("array")
            }
            Type::Map(value) => {
                self.value(&format!("{place}{{}}"), value, &published["additionalProperties"]);
                is.0 == Some("object")
            }
            Type::Extra => is.0 == Some("array"),
            Type::Fields => is.0 == Some("object"),
            Type::Bool => is.0 == Some("boolean"),
            Type::Bytes => is == (Some("string"), Some("byte")),
            Type::F64 => is == (Some("number"), Some("double")),
            Type::I32 => is == (Some("integer"), Some("int32")),
            Type::I64 => is == (Some("integer"), Some("int64")),
            Type::IntOrString => int_or_string,
            Type::Quantity => quantity,
            Type::Str => is == (Some("string"), None),
            Type::Time | Type::MicroTime => is == (Some("string"), Some("date-time")),
        };
        if !fits {
            self.differences.insert(format!("{place} is {ours:?}, published as {is:?}"));
        }
    }

    /// The schema that a reference stands for.
    fn resolved(&self, schema: &Value) -> Value {
        match schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            Some(name) => self.definitions[name].clone(),
            None => schema.clone(),
        }
    }
}

/// Schemas by API version and kind.
type Kinds = BTreeMap<(&'static str, &'static str), Value>;

/// Every kind of the tables with its published schema, and the definitions these refer to.
fn published() -> (Kinds, Map<String, Value>) {
    let mut generator = SchemaGenerator::default();
    let mut kinds = Kinds::new();
    macro_rules! kinds {
        ($($version:literal: $($kind:ty)*;)*) => {$($({
            let name = stringify!($kind).rsplit("::").next().unwrap().trim();
            kinds.insert(($version, name), generator.subschema_for::<$kind>().to_value());
        })*)*};
    }
    kinds! {
        "v1": core::ConfigMap core::Secret core::Namespace core::Node core::Service
            core::ServiceAccount core::Event core::Binding core::Pod DeleteOptions Status;
        "apps/v1": apps::Deployment apps::DaemonSet apps::ReplicaSet apps::StatefulSet;
        "autoscaling/v1": Scale;
        "authentication.k8s.io/v1": authentication::TokenReview authentication::TokenRequest
            authentication::SelfSubjectReview;
        "authorization.k8s.io/v1": authorization::SelfSubjectAccessReview
            authorization::SubjectAccessReview authorization::LocalSubjectAccessReview
            authorization::SelfSubjectRulesReview;
        "certificates.k8s.io/v1": CertificateSigningRequest;
        "coordination.k8s.io/v1": Lease;
        "discovery.k8s.io/v1": EndpointSlice;
        "events.k8s.io/v1": events::Event;
        "policy/v1": PodDisruptionBudget Eviction;
        "rbac.authorization.k8s.io/v1": rbac::Role rbac::RoleBinding rbac::ClusterRole
            rbac::ClusterRoleBinding;
        "apiextensions.k8s.io/v1": CustomResourceDefinition;
        "admissionregistration.k8s.io/v1": admission::ValidatingAdmissionPolicy
            admission::ValidatingAdmissionPolicyBinding;
    }
    (kinds, generator.take_definitions(true))
}

#[test]
fn members_and_types_are_the_published_ones() {
    let (kinds, definitions) = published();
    let mut comparison =
        Comparison { definitions, compared: BTreeSet::new(), differences: BTreeSet::new() };
    for ((version, name), schema) in &kinds {
        let schema = comparison.resolved(schema);
        comparison.message(kind(version, name).unwrap(), &schema);
    }
    assert_eq!(comparison.differences, BTreeSet::new());
    // A kind of the protocol, which the definitions do not have.
    comparison.compared.insert("PartialObjectMetadata");
    assert_eq!(comparison.compared, SCHEMA.messages.keys().copied().collect());
}
