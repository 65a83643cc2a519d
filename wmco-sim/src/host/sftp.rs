//! The SFTP server of a simulated host (version 3, like OpenSSH for Windows).

use std::collections::HashMap;
use std::sync::Arc;

use russh_sftp::extensions::{self, LimitsExtension};
use russh_sftp::protocol::{
    Attrs, Data, ExtendedReply, File, FileAttributes, Handle, Name, OpenFlags, Packet, Status,
    StatusCode, Version,
};
use russh_sftp::{de, ser};
use tokio_util::sync::CancellationToken;
use wmco_core::winpath::WindowsPath;

use super::disk::{Disk, DiskError, Stat};
use super::shared::Shared;

/// Renames over an existing file. Source: OpenSSH, PROTOCOL, section 4.3.
const POSIX_RENAME: &str = "posix-rename@openssh.com";

/// Largest read or write, and largest packet including its header, that OpenSSH accepts.
const MOST_DATA: u64 = 261_120;
const MOST_PACKET: u64 = 262_144;

/// Most files that a session may have open at the same time.
const MOST_HANDLES: usize = 128;

/// An SFTP session.
pub(super) struct Sftp {
    disk: Disk,
    host: Arc<Shared>,
    /// Ends the session's connection.
    cut: CancellationToken,
    open: HashMap<String, Open>,
    opened: u64,
    uploaded: u64,
}

enum Open {
    File {
        path: WindowsPath,
        flags: OpenFlags,
    },
    /// Entries that are not listed yet.
    Directory(Vec<File>),
}

impl Sftp {
    pub(super) fn new(host: Arc<Shared>, cut: CancellationToken) -> Self {
        let disk = Disk::new(&host.model);
        Self { disk, host, cut, open: HashMap::new(), opened: 0, uploaded: 0 }
    }

    /// Parses a path; a name that the model cannot hold does not exist. Relative paths lie in the user's home.
    fn parse(&self, path: &str) -> Result<WindowsPath, StatusCode> {
        let path = path.trim_end_matches('/');
        let parsed = match path.strip_prefix("./").unwrap_or(path) {
            "" | "." => Ok(self.host.home()),
            path if path.starts_with('/') || path.contains(':') => WindowsPath::from_sftp(path),
            path => self.host.home().join(&path.replace('/', "\\")),
        };
        parsed.map_err(|_| StatusCode::NoSuchFile)
    }

    fn keep(&mut self, id: u32, open: Open) -> Result<Handle, StatusCode> {
        if self.open.len() >= MOST_HANDLES {
            return Err(StatusCode::Failure);
        }
        self.opened += 1;
        let handle = format!("{:08x}", self.opened);
        self.open.insert(handle.clone(), open);
        Ok(Handle { id, handle })
    }

    fn file(&self, handle: &str) -> Result<(&WindowsPath, OpenFlags), StatusCode> {
        match self.open.get(handle) {
            Some(Open::File { path, flags }) => Ok((path, *flags)),
            Some(Open::Directory(_)) | None => Err(StatusCode::Failure),
        }
    }

    fn stat_of(&self, id: u32, path: &str) -> Result<Attrs, StatusCode> {
        let stat = self.disk.stat(&self.parse(path)?).ok_or(StatusCode::NoSuchFile)?;
        Ok(Attrs { id, attrs: attributes(stat) })
    }

    /// A plain rename refuses to replace a file; OpenSSH's extension replaces it.
    fn rename(&self, from: &str, to: &str, replace: bool) -> Result<(), StatusCode> {
        let (from, to) = (self.parse(from)?, self.parse(to)?);
        if !replace && self.disk.stat(&to).is_some() {
            return Err(StatusCode::Failure);
        }
        Ok(self.disk.rename(&from, &to)?)
    }
}

impl russh_sftp::server::Handler for Sftp {
    type Error = StatusCode;

    fn unimplemented(&self) -> StatusCode {
        StatusCode::OpUnsupported
    }

    async fn init(
        &mut self,
        _version: u32,
        _extensions: HashMap<String, String>,
    ) -> Result<Version, StatusCode> {
        let known = [POSIX_RENAME, extensions::FSYNC, extensions::LIMITS];
        let mut version = Version::new();
        version.extensions = known.map(|name| (name.to_owned(), "1".to_owned())).into();
        Ok(version)
    }

    async fn open(
        &mut self,
        id: u32,
        filename: String,
        flags: OpenFlags,
        _attrs: FileAttributes,
    ) -> Result<Handle, StatusCode> {
        let path = self.parse(&filename)?;
        match self.disk.stat(&path) {
            Some(Stat::Directory) => return Err(StatusCode::Failure),
            Some(Stat::File { .. }) if flags.contains(OpenFlags::EXCLUDE) => {
                return Err(StatusCode::Failure);
            }
            Some(Stat::File { .. }) if flags.contains(OpenFlags::TRUNCATE) => {
                self.disk.create(&path)?;
            }
            Some(Stat::File { .. }) => {}
            None if flags.contains(OpenFlags::CREATE) => self.disk.create(&path)?,
            None => return Err(StatusCode::NoSuchFile),
        }
        self.keep(id, Open::File { path, flags })
    }

    async fn close(&mut self, id: u32, handle: String) -> Result<Status, StatusCode> {
        self.open.remove(&handle).map(|_| done(id)).ok_or(StatusCode::Failure)
    }

    async fn read(
        &mut self,
        id: u32,
        handle: String,
        offset: u64,
        len: u32,
    ) -> Result<Data, StatusCode> {
        let (path, flags) = self.file(&handle)?;
        if !flags.contains(OpenFlags::READ) {
            return Err(StatusCode::PermissionDenied);
        }
        let data = self.disk.read(path, offset, u64::from(len).min(MOST_DATA))?;
        if data.is_empty() { Err(StatusCode::Eof) } else { Ok(Data { id, data }) }
    }

    async fn write(
        &mut self,
        id: u32,
        handle: String,
        offset: u64,
        data: Vec<u8>,
    ) -> Result<Status, StatusCode> {
        let (path, flags) = self.file(&handle)?;
        if !flags.contains(OpenFlags::WRITE) {
            return Err(StatusCode::PermissionDenied);
        }
        let offset = (!flags.contains(OpenFlags::APPEND)).then_some(offset);
        self.disk.write(path, offset, &data)?;
        let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
        self.uploaded = self.uploaded.saturating_add(bytes);
        self.host.tally.uploaded(bytes);
        let limit = self.host.conditions.borrow().upload_limit();
        if limit.is_some_and(|limit| self.uploaded >= limit) {
            self.cut.cancel();
        }
        Ok(done(id))
    }

    async fn lstat(&mut self, id: u32, path: String) -> Result<Attrs, StatusCode> {
        self.stat_of(id, &path)
    }

    async fn stat(&mut self, id: u32, path: String) -> Result<Attrs, StatusCode> {
        self.stat_of(id, &path)
    }

    async fn fstat(&mut self, id: u32, handle: String) -> Result<Attrs, StatusCode> {
        let (path, _) = self.file(&handle)?;
        let stat = self.disk.stat(path).ok_or(StatusCode::NoSuchFile)?;
        Ok(Attrs { id, attrs: attributes(stat) })
    }

    async fn setstat(
        &mut self,
        id: u32,
        path: String,
        attrs: FileAttributes,
    ) -> Result<Status, StatusCode> {
        let path = self.parse(&path)?;
        self.disk.stat(&path).ok_or(StatusCode::NoSuchFile)?;
        // The model has no modes, owners and times, but sizes.
        if let Some(size) = attrs.size {
            self.disk.resize(&path, size)?;
        }
        Ok(done(id))
    }

    async fn fsetstat(
        &mut self,
        id: u32,
        handle: String,
        attrs: FileAttributes,
    ) -> Result<Status, StatusCode> {
        let (path, _) = self.file(&handle)?;
        if let Some(size) = attrs.size {
            self.disk.resize(path, size)?;
        }
        Ok(done(id))
    }

    async fn opendir(&mut self, id: u32, path: String) -> Result<Handle, StatusCode> {
        let entries = self.disk.list(&self.parse(&path)?)?;
        let files =
            entries.into_iter().map(|(name, stat)| File::new(name, attributes(stat))).collect();
        self.keep(id, Open::Directory(files))
    }

    async fn readdir(&mut self, id: u32, handle: String) -> Result<Name, StatusCode> {
        match self.open.get_mut(&handle) {
            Some(Open::Directory(files)) if files.is_empty() => Err(StatusCode::Eof),
            Some(Open::Directory(files)) => Ok(Name { id, files: std::mem::take(files) }),
            Some(Open::File { .. }) | None => Err(StatusCode::Failure),
        }
    }

    async fn remove(&mut self, id: u32, filename: String) -> Result<Status, StatusCode> {
        self.disk.remove(&self.parse(&filename)?)?;
        Ok(done(id))
    }

    async fn mkdir(
        &mut self,
        id: u32,
        path: String,
        _attrs: FileAttributes,
    ) -> Result<Status, StatusCode> {
        self.disk.make_directory(&self.parse(&path)?)?;
        Ok(done(id))
    }

    async fn rmdir(&mut self, id: u32, path: String) -> Result<Status, StatusCode> {
        self.disk.remove_directory(&self.parse(&path)?)?;
        Ok(done(id))
    }

    async fn realpath(&mut self, id: u32, path: String) -> Result<Name, StatusCode> {
        let absolute = self.parse(&path)?.sftp();
        Ok(Name { id, files: vec![File::dummy(absolute)] })
    }

    async fn rename(
        &mut self,
        id: u32,
        oldpath: String,
        newpath: String,
    ) -> Result<Status, StatusCode> {
        Self::rename(self, &oldpath, &newpath, false)?;
        Ok(done(id))
    }

    async fn extended(
        &mut self,
        id: u32,
        request: String,
        data: Vec<u8>,
    ) -> Result<Packet, StatusCode> {
        match request.as_str() {
            POSIX_RENAME => {
                let (from, to): (String, String) =
                    de::from_bytes(&mut data.into()).map_err(|_| StatusCode::BadMessage)?;
                Self::rename(self, &from, &to, true)?;
                Ok(done(id).into())
            }
            extensions::FSYNC => Ok(done(id).into()),
            extensions::LIMITS => {
                let limits = LimitsExtension {
                    max_packet_len: MOST_PACKET,
                    max_read_len: MOST_DATA,
                    max_write_len: MOST_DATA,
                    max_open_handles: MOST_HANDLES as u64,
                };
                let data = ser::to_bytes(&limits).map_err(|_| StatusCode::Failure)?;
                Ok(ExtendedReply { id, data: data.to_vec() }.into())
            }
            _ => Err(StatusCode::OpUnsupported),
        }
    }
}

impl From<DiskError> for StatusCode {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Denied => Self::PermissionDenied,
            DiskError::Missing => Self::NoSuchFile,
            // SFTP version 3 has no status for a full disk.
            DiskError::Failed => Self::Failure,
        }
    }
}

fn done(id: u32) -> Status {
    Status {
        id,
        status_code: StatusCode::Ok,
        error_message: "Success".to_owned(),
        language_tag: String::new(),
    }
}

fn attributes(stat: Stat) -> FileAttributes {
    let mut attributes = FileAttributes::empty();
    attributes.size = Some(match stat {
        Stat::Directory => 0,
        Stat::File { size } => size,
    });
    attributes.permissions = Some(0o700);
    match stat {
        Stat::Directory => attributes.set_dir(true),
        Stat::File { .. } => attributes.set_regular(true),
    }
    attributes
}
