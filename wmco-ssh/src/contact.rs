//! The agent that is brought to a host of which nothing is believed.
//!
//! It goes into a fresh folder of the login user's own one, which on Windows nobody else but
//! administrators may write to. Nothing of it is taken over from earlier attempts.

use std::time::Duration;

use futures::future::join;
use wmco_core::names::host::BROUGHT_AGENT;
use wmco_core::protocol::FreshFolder;

use crate::blob::Payload;
use crate::error::HostError;
use crate::session::Session;
use crate::upload::OnProgress;

/// Left folders that are removed in one contact.
const CLEARED_AT_MOST: usize = 16;

/// Windows lets the file of a program go a moment after that has ended.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];

fn brought(folder: FreshFolder) -> String {
    format!("{folder}/{BROUGHT_AGENT}")
}

impl Session {
    /// Makes `folder` and sends the agent into it.
    pub(crate) async fn bring(
        &self,
        agent: &Payload,
        folder: FreshFolder,
        on_progress: OnProgress<'_>,
    ) -> Result<(), HostError> {
        self.upload_new(&folder.to_string(), &brought(folder), agent, on_progress).await
    }

    /// Removes `folder` with the agent in it. What stays is removed by a later contact.
    pub(crate) async fn take_back(&self, folder: FreshFolder) {
        for pause in PAUSES.map(Some).into_iter().chain([None]) {
            if self.is_closed() {
                return;
            }
            match (self.remove(folder).await, pause) {
                (Ok(true), _) => return,
                (Ok(false) | Err(_), Some(pause)) => tokio::time::sleep(pause).await,
                (outcome, None) => {
                    tracing::warn!(target = %self.target(), %folder, ?outcome, "the folder stays");
                }
            }
        }
    }

    /// Removes what contacts that were cut have left, but `keep`. One whose agent still runs stays.
    pub(crate) async fn clear_fresh_folders(
        &self,
        keep: Option<FreshFolder>,
    ) -> Result<(), HostError> {
        let mut left = match self.sftp().await?.fresh_folders().await {
            Ok(left) => left,
            Err(error @ HostError::Sftp { .. }) => {
                tracing::debug!(%error, "folders of earlier contacts stay");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        left.retain(|folder| Some(*folder) != keep);
        left.truncate(CLEARED_AT_MOST);
        for folder in left {
            match self.remove(folder).await {
                Ok(removed) => tracing::debug!(%folder, removed, "folder of an earlier contact"),
                Err(error @ HostError::Sftp { .. }) => {
                    tracing::debug!(%folder, %error, "folder of an earlier contact stays");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn remove(&self, folder: FreshFolder) -> Result<bool, HostError> {
        let sftp = self.sftp().await?;
        let (agent, folder) = (brought(folder), folder.to_string());
        let (agent, folder) = join(sftp.remove_file(&agent), sftp.remove_folder(&folder)).await;
        agent?;
        folder
    }
}
