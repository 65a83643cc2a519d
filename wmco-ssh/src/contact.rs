//! Uploads the agent to a host on which no existing file is trusted.
//!
//! The agent is uploaded to a new folder in the login user's home, which on Windows only that user and administrators
//! may write to. No files of earlier attempts are used.

use std::time::Duration;

use futures::future::join;
use wmco_core::names::host::UPLOADED_AGENT;
use wmco_core::protocol::FreshFolder;

use crate::blob::Payload;
use crate::error::HostError;
use crate::session::Session;
use crate::upload::OnProgress;

/// Most left-over folders that one contact removes.
const CLEARED_AT_MOST: usize = 16;

/// Pauses between removals: Windows releases a program's file a moment after its process has ended.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];

fn brought(folder: FreshFolder) -> String {
    format!("{folder}/{UPLOADED_AGENT}")
}

impl Session {
    /// Creates `folder` and uploads the agent to it.
    pub(crate) async fn upload_agent(
        &self,
        agent: &Payload,
        folder: FreshFolder,
        on_progress: OnProgress<'_>,
    ) -> Result<(), HostError> {
        self.upload_new(&folder.to_string(), &brought(folder), agent, on_progress).await
    }

    /// Removes `folder` with the agent in it. If that fails, a later contact removes it.
    pub(crate) async fn remove_agent(&self, folder: FreshFolder) {
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

    /// Removes the folders of interrupted contacts, except `keep`. A folder whose agent still runs stays.
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
