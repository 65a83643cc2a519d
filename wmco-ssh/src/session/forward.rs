//! Forwards connections through a jump host.

use super::Session;
use crate::dial::ByteStream;
use crate::error::{ConnectError, Stage, is_cut};
use crate::route::Target;
use crate::stream::{Ending, ReadsOn};

/// The originator address that we report; servers only log it. Source: RFC 4254, section 7.2.
const ORIGIN: (&str, u32) = ("127.0.0.1", 0);

impl Session {
    /// Opens a stream to `to` from the host at the other end of this session.
    pub(super) async fn forward(&self, to: &Target) -> Result<ByteStream, ConnectError> {
        let (address, port) = ORIGIN;
        let opening =
            self.handle.channel_open_direct_tcpip(&to.address, to.port.into(), address, port);
        match opening.await {
            Ok(channel) => {
                let stream = Ending::new(channel.into_stream(), self.ended.child_token());
                Ok(Box::new(ReadsOn::new(stream)))
            }
            Err(error) if is_cut(&error) => Err(ConnectError::Dropped {
                target: self.target().to_string(),
                stage: Stage::Forward,
                source: error.into(),
            }),
            Err(error) => Err(ConnectError::NotForwarded {
                target: to.to_string(),
                via: self.target().to_string(),
                source: error.into(),
            }),
        }
    }
}
