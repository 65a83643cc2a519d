//! A draft of a provider specification.

use std::str::Split;

use serde_json::{Map, Value, json};

use super::options::{MachineSetOptions, Setting};
use super::platform::Platform;
use super::spelling::{mistyped, says_something};
use super::static_addresses::take_static_addresses;

/// The value of a provider specification, with the settings that were used and those that are missing. Paths are
/// JSON pointers (RFC 6901).
pub(super) struct Draft<'a> {
    /// The value so far: from an existing MachineSet, or the default.
    pub(super) value: Value,
    /// Whether it comes from an existing MachineSet.
    pub(super) taken: bool,
    /// Settings that are neither given nor in the existing MachineSet.
    pub(super) missing: Vec<Setting>,
    /// Settings that a MachineSet of this platform has.
    pub(super) known: Vec<Setting>,
    /// Removed members of the existing MachineSet, which Windows cannot use.
    pub(super) left_out: Vec<&'static str>,
    /// What was written otherwise than it was given.
    pub(super) notes: Vec<String>,
    options: &'a MachineSetOptions,
}

impl<'a> Draft<'a> {
    pub(super) fn new(value: Value, taken: bool, options: &'a MachineSetOptions) -> Self {
        let (missing, left_out, notes) = (Vec::new(), Vec::new(), Vec::new());
        let known = vec![Setting::Infrastructure, Setting::Name, Setting::Replicas];
        Self { value, taken, missing, known, left_out, notes, options }
    }

    /// Gives members of the existing MachineSet the type that they are to have.
    pub(super) fn mend_types(&mut self, platform: Platform) {
        for (at, text, meant) in mistyped(platform, &self.value) {
            let Some(meant) = meant else { continue };
            self.notes.push(format!("{}: {text}, as is done here", at.trim_start_matches('/')));
            self.put(at, meant);
        }
    }

    /// The given value of `setting`.
    pub(super) fn option(&mut self, setting: Setting) -> Option<Value> {
        self.known.push(setting);
        self.options.value(setting)
    }

    /// The given value of `setting` as text.
    pub(super) fn text(&mut self, setting: Setting) -> Option<String> {
        self.option(setting)?.as_str().map(str::to_owned)
    }

    /// Puts the given value of `setting` at `at`; without one the existing value stays.
    pub(super) fn may(&mut self, setting: Setting, at: &str) {
        if let Some(value) = self.option(setting) {
            self.put(at, value);
        }
    }

    /// Like `may`, but reports the setting as missing if there is no value at all.
    pub(super) fn ask(&mut self, setting: Setting, at: &str) {
        self.may(setting, at);
        if !self.has(at) {
            self.missing.push(setting);
        }
    }

    /// Reports those of `settings` that are not given as missing; existing values do not count.
    pub(super) fn miss_unless_given(&mut self, settings: &[Setting]) {
        let options = self.options;
        self.missing.extend(settings.iter().filter(|setting| options.value(**setting).is_none()));
    }

    /// Puts `value` at `at` and replaces an existing value.
    pub(super) fn put(&mut self, at: &str, value: impl Into<Value>) {
        put(&mut self.value, at.trim_start_matches('/').split('/'), value.into());
    }

    /// Removes `/member`.
    pub(super) fn leave_out(&mut self, member: &'static str) {
        self.leave_out_below("", member);
    }

    /// Removes `/member` of the object at `at`.
    pub(super) fn leave_out_below(&mut self, at: &str, member: &'static str) {
        let object = self.value.pointer_mut(at).and_then(Value::as_object_mut);
        let gone = object.and_then(|members| members.remove(member));
        if gone.as_ref().is_some_and(says_something) && !self.left_out.contains(&member) {
            self.left_out.push(member);
        }
    }

    /// Removes static addresses, which Windows does not read.
    pub(super) fn leave_out_static_addresses(&mut self) {
        self.left_out.extend(take_static_addresses(&mut self.value));
    }

    /// Removes the failure domain, in place of which something else is given.
    pub(super) fn replace_failure_domain(&mut self) {
        let gone = self.value.as_object_mut().and_then(|members| members.remove("failureDomain"));
        if gone.as_ref().is_some_and(says_something) {
            let note = "failureDomain: left out, for cluster and subnet are given in its place";
            self.notes.push(note.to_owned());
        }
    }

    /// Records under `name` that only one item of `/member` is kept. Other disks hold data for Linux.
    pub(super) fn leave_out_further(&mut self, member: &str, name: &'static str) {
        let items = self.value.get(member).and_then(Value::as_array);
        if items.is_some_and(|items| items.len() > 1) {
            self.left_out.push(name);
        }
    }

    /// Whether there is a value at `at`.
    pub(super) fn has(&self, at: &str) -> bool {
        self.value.pointer(at).is_some_and(says_something)
    }

    /// The Windows image.
    pub(super) fn image(&mut self) -> Option<String> {
        let image = self.text(Setting::Image);
        if image.is_none() {
            self.missing.push(Setting::Image);
        }
        image
    }

    /// Sets the size of the disk in GiB: the given size; else the existing one at `at`, but at least the minimum
    /// for Windows.
    pub(super) fn disk(&mut self, at: &str) {
        let gib = self.option(Setting::DiskGib).and_then(|gib| gib.as_u64());
        let there = self.value.pointer(at).and_then(Value::as_u64).unwrap_or_default();
        let least = u64::from(crate::limits::WINDOWS_DISK_GIB);
        self.put(at, gib.unwrap_or(there.max(least)));
    }

    /// Sets the Secret with the user data, in the platform's form.
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

/// Puts `new` into `value` at `path`. A value of another type on the way is replaced by an object, or, for the
/// first item, by a list.
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
