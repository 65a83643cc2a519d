//! A provider specification in the making.

use std::str::Split;

use serde_json::{Map, Value, json};

use super::options::{MachineSetOptions, Setting};
use super::platform::Platform;

/// The value of a provider specification, and what was asked and missed on the way. Places are JSON
/// pointers (RFC 6901).
pub(super) struct Draft<'a> {
    /// The value so far: that of an existing MachineSet, or what is usual.
    pub(super) value: Value,
    /// Whether it comes from an existing MachineSet.
    pub(super) taken: bool,
    /// What is neither given nor there.
    pub(super) missing: Vec<Setting>,
    /// What a MachineSet of this platform can be told.
    pub(super) known: Vec<Setting>,
    /// Members of the existing MachineSet that are of no use to Windows.
    pub(super) left_out: Vec<&'static str>,
    options: &'a MachineSetOptions,
}

impl<'a> Draft<'a> {
    pub(super) fn new(value: Value, taken: bool, options: &'a MachineSetOptions) -> Self {
        let (missing, left_out) = (Vec::new(), Vec::new());
        let known = vec![Setting::Infrastructure, Setting::Name, Setting::Replicas];
        Self { value, taken, missing, known, left_out, options }
    }

    /// What was said about `setting`.
    pub(super) fn option(&mut self, setting: Setting) -> Option<Value> {
        self.known.push(setting);
        self.options.value(setting)
    }

    /// The same as text.
    pub(super) fn text(&mut self, setting: Setting) -> Option<String> {
        self.option(setting)?.as_str().map(str::to_owned)
    }

    /// What was said about `setting` stands at `at`; if nothing was, what is there stays.
    pub(super) fn may(&mut self, setting: Setting, at: &str) {
        if let Some(value) = self.option(setting) {
            self.put(at, value);
        }
    }

    /// The same, and something has to be there.
    pub(super) fn ask(&mut self, setting: Setting, at: &str) {
        self.may(setting, at);
        if !self.has(at) {
            self.missing.push(setting);
        }
    }

    /// What is there is of no use for these.
    pub(super) fn miss_unless_given(&mut self, settings: &[Setting]) {
        let options = self.options;
        self.missing.extend(settings.iter().filter(|setting| options.value(**setting).is_none()));
    }

    /// `value` stands at `at`, whatever was there.
    pub(super) fn put(&mut self, at: &str, value: impl Into<Value>) {
        put(&mut self.value, at.trim_start_matches('/').split('/'), value.into());
    }

    /// Nothing stands at `/member` any more.
    pub(super) fn leave_out(&mut self, member: &'static str) {
        let gone = self.value.as_object_mut().and_then(|members| members.remove(member));
        if gone.as_ref().is_some_and(is_something) {
            self.left_out.push(member);
        }
    }

    /// Notes under `name` that one item of `/member` is all that will stay. Other disks hold what Linux
    /// has there.
    pub(super) fn leave_out_further(&mut self, member: &str, name: &'static str) {
        let items = self.value.get(member).and_then(Value::as_array);
        if items.is_some_and(|items| items.len() > 1) {
            self.left_out.push(name);
        }
    }

    /// Whether anything stands at `at`.
    pub(super) fn has(&self, at: &str) -> bool {
        self.value.pointer(at).is_some_and(is_something)
    }

    /// The image that Windows starts from.
    pub(super) fn image(&mut self) -> Option<String> {
        let image = self.text(Setting::Image);
        if image.is_none() {
            self.missing.push(Setting::Image);
        }
        image
    }

    /// Size of the disk in GiB: what was said; else what stands at `at`, if it is enough for Windows.
    pub(super) fn disk(&mut self, at: &str) {
        let gib = self.option(Setting::DiskGib).and_then(|gib| gib.as_u64());
        let there = self.value.pointer(at).and_then(Value::as_u64).unwrap_or_default();
        let least = u64::from(crate::limits::WINDOWS_DISK_GIB);
        self.put(at, gib.unwrap_or(there.max(least)));
    }

    /// The Secret with what a new machine runs, in the shape that the platform's specification has.
    pub(super) fn user_data(&mut self, platform: Platform) {
        use crate::names::objects::{MACHINE_API_NAMESPACE, USER_DATA_SECRET};
        let secret = if platform == Platform::Azure {
            json!({"name": USER_DATA_SECRET, "namespace": MACHINE_API_NAMESPACE})
        } else {
            json!({"name": USER_DATA_SECRET})
        };
        self.put("/userDataSecret", secret);
    }
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Puts `new` into `value` where `path` leads. What is in the way is made an object, or, for the first
/// item, a list.
fn put(value: &mut Value, mut path: Split<'_, char>, new: Value) {
    match path.next() {
        None => *value = new,
        Some("0") => {
            let mut items = match value.take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            let mut first = items.first_mut().map(Value::take).unwrap_or_default();
            put(&mut first, path, new);
            items.splice(..items.len().min(1), [first]);
            *value = items.into();
        }
        Some(member) => {
            let mut members = match value.take() {
                Value::Object(members) => members,
                _ => Map::new(),
            };
            put(members.entry(member).or_insert(Value::Null), path, new);
            *value = members.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: Value, at: &str, expected: &Value) {
        let options = MachineSetOptions::default();
        let mut draft = Draft::new(value, true, &options);
        draft.put(at, 7);
        assert_eq!(&draft.value, expected);
        assert!(draft.has(at));
    }

    #[test]
    fn what_is_beside_stays() {
        check(json!({"a": {"b": 1, "c": 2}}), "/a/b", &json!({"a": {"b": 7, "c": 2}}));
        check(json!({"a": [{"b": 1, "c": 2}, 3]}), "/a/0/b", &json!({"a": [{"b": 7, "c": 2}, 3]}));
    }

    #[test]
    fn what_is_in_the_way_goes() {
        for value in [json!(null), json!("a"), json!([1]), json!({"a": 1}), json!({"a": {"0": 1}})]
        {
            check(value, "/a/0/b", &json!({"a": [{"b": 7}]}));
        }
        check(json!({"a": []}), "/a/0", &json!({"a": [7]}));
    }
}
