//! Decides which content of the services ConfigMap the daemon applies.

use wmco_core::protocol::{Access, ServicesData};
use wmco_core::text::chain;

use super::ManifestState;
use crate::limits::JSON_BYTES;
use crate::manifest::Manifest;
use crate::owner::Owner;
use crate::windows::{Files, WindowsError};

/// The services ConfigMap of the desired version, as observed.
#[derive(Clone, Debug)]
pub enum Found {
    /// There is no ConfigMap for that version.
    Missing,
    /// The ConfigMap exists, but its content is not released for this node.
    Held,
    /// The ConfigMap is refused; the text says why.
    Refused(String),
    /// The ConfigMap is valid.
    Read(Manifest),
}

impl Found {
    /// Borrows the value as a [`ManifestState`].
    pub fn state(&self) -> ManifestState<'_> {
        match self {
            Self::Missing => ManifestState::Missing,
            Self::Held => ManifestState::Held,
            Self::Refused(why) => ManifestState::Refused(why),
            Self::Read(manifest) => ManifestState::Read(manifest),
        }
    }

    fn read(data: &ServicesData) -> Self {
        match Manifest::parse(data) {
            Err(error) => Self::Refused(chain(&error)),
            Ok(manifest) => Self::Read(manifest),
        }
    }
}

/// The content last released for the node. With it, services are managed while the ConfigMap has other content. If it
/// is lost, services are not managed until the next release, and after a start of Windows none of them runs: so it is
/// kept on the host, too.
#[derive(Clone, Debug, Default)]
pub struct Released(Option<ServicesData>);

impl Released {
    /// Returns the content that the daemon applies, given the ConfigMap's data and the digest on the Node
    /// ([`NodeIntent::released`](super::NodeIntent::released)). Without a digest, that is the ConfigMap's.
    ///
    /// Source: `docs/contract/wicd.md`, WICD52.
    ///
    /// ```
    /// use wmco_core::protocol::ServicesData;
    /// use wmco_services::daemon::{Found, Released};
    ///
    /// let data = |services: &str| {
    ///     ServicesData([("services", services), ("files", "[]")].map(|(k, v)| (k.into(), v.into())).into())
    /// };
    /// let mut released = Released::default();
    /// let other = data("[]").digest().to_string();
    /// assert!(matches!(released.choose(Some("another digest"), Some(data("[]"))), Found::Held));
    /// assert!(matches!(released.choose(Some(&other), Some(data("[]"))), Found::Read(_)));
    /// assert!(matches!(released.choose(None, Some(data("[]"))), Found::Read(_)));
    /// ```
    pub fn choose(&mut self, digest: Option<&str>, data: Option<ServicesData>) -> Found {
        let missing = data.is_none();
        let Some(digest) = digest else {
            return data.map_or(Found::Missing, |data| Found::read(&data));
        };
        let is_released = |data: &ServicesData| data.digest().to_string() == digest;
        if let Some(data) = data.filter(is_released) {
            self.0 = Some(data);
        }
        match self.0.as_ref().filter(|data| is_released(data)) {
            Some(data) => Found::read(data),
            None if missing => Found::Missing,
            None => Found::Held,
        }
    }

    /// As [`choose`](Self::choose), also with what was released while an earlier process of the daemon ran. That is kept
    /// in [`Owner::released_record`], for administrators alone: proxy addresses can hold passwords.
    ///
    /// # Errors
    /// The file is there and cannot be read. What cannot be written is missed after the next start alone.
    pub fn choose_kept(
        &mut self,
        files: &dyn Files,
        digest: Option<&str>,
        data: Option<ServicesData>,
    ) -> Result<Found, WindowsError> {
        let record = &Owner::ours().released_record;
        if self.0.is_none() && digest.is_some() {
            let kept = files.read(record, JSON_BYTES)?;
            self.0 = kept.and_then(|json| serde_json::from_slice(&json).ok());
        }
        let before = self.0.clone();
        let found = self.choose(digest, data);
        if self.0 != before
            && let Some(json) = self.0.as_ref().and_then(|data| serde_json::to_vec(data).ok())
        {
            // Services must not wait for a full disk.
            let _ = files.write(record, Access::Administrators, &mut json.as_slice());
        }
        Ok(found)
    }
}
