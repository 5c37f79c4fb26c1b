//! A task's bytes on their way: a tar archive whose first entry is the script and whose last says that nothing is
//! missing. Contents are read while they are sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::Arc,
};

use snafu::{ResultExt as _, Snafu, ensure};
use tokio::{
    fs,
    io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    task,
};

use crate::{
    archive::{self, Archive},
    content::{Identity, Source},
    operation::Access,
    script::Payload,
};

/// Why a stream could not be sent whole. The machine then does nothing.
#[derive(Debug, Snafu)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Error {
    /// The way to the machine is gone; why is known to the command.
    #[snafu(display("the machine takes no more bytes: {source}"))]
    Write { source: io::Error },
    /// A file here cannot be read.
    #[snafu(display("cannot read {}: {source}", path.display()))]
    Read { path: PathBuf, source: io::Error },
    /// A file here is not what it was when the run began.
    #[snafu(display("{} changed while it was in use", path.display()))]
    Changed { path: PathBuf },
    /// An archive here cannot be read.
    #[snafu(display("{source}"))]
    Archive { source: archive::Error },
    /// Only the machine has the bytes.
    #[snafu(display("what step {number} needs is only on the machine"))]
    OnlyThere {
        /// The number of the step.
        number: usize,
    },
    /// Something that was promised is not in the archive.
    #[snafu(display("{name} was not found in {}", path.display()))]
    Missing {
        /// The path of the archive.
        path: PathBuf,
        /// The path in the archive.
        name: String,
    },
}

const PIECE: usize = 256 * 1024;

/// A record of tar, in bytes: readers take one at once and would wait for it.
const RECORD: u64 = 10_240;

/// Files of an archive, each with the number of the step that needs it.
type Wanted = (Arc<Archive>, Vec<(String, usize)>);

/// Sends a script with contents, each by the number of its step. Gives the number of bytes.
pub(crate) async fn send(
    writer: &mut (dyn AsyncWrite + Send + Unpin),
    script: &str,
    payloads: &[(usize, Payload)],
) -> Result<u64, Error> {
    let mut stream = Stream { writer, sent: 0 };
    stream.whole("run", None, script.as_bytes()).await?;
    let mut archives: BTreeMap<PathBuf, Wanted> = BTreeMap::new();
    for (number, payload) in payloads {
        let name = format!("f/{number}");
        let access = payload.access.as_ref();
        match &payload.content.source {
            Source::Bytes(bytes) => stream.whole(&name, access, bytes).await?,
            Source::File(path, identity) => stream.file(&name, access, path, *identity).await?,
            Source::Machine => return OnlyThereSnafu { number: *number }.fail(),
            Source::Archived(archive, entry) => {
                let known = archives
                    .entry(archive.path().to_owned())
                    .or_insert_with(|| (Arc::clone(archive), Vec::new()));
                known.1.push((entry.clone(), *number));
            }
        }
    }
    let accesses: BTreeMap<usize, &Payload> = payloads
        .iter()
        .map(|(number, payload)| (*number, payload))
        .collect();
    for (archive, mut wanted) in archives.into_values() {
        // One pass gives every file once; a second step with the same file takes another.
        while !wanted.is_empty() {
            let mut pass = BTreeMap::new();
            wanted.retain(|(entry, number)| {
                let again = pass.contains_key(entry);
                if !again {
                    pass.insert(entry.clone(), *number);
                }
                again
            });
            stream.archived(&archive, pass, &accesses).await?;
        }
    }
    stream.whole("end", None, b"").await?;
    stream.close().await?;
    Ok(stream.sent)
}

struct Stream<'a> {
    writer: &'a mut (dyn AsyncWrite + Send + Unpin),
    sent: u64,
}

impl Stream<'_> {
    async fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.sent += bytes.len() as u64;
        self.writer.write_all(bytes).await.context(WriteSnafu)
    }

    async fn header(
        &mut self,
        name: &str,
        access: Option<&Access>,
        size: u64,
    ) -> Result<(), Error> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        // Names are our own and short; those of users and groups are checked words.
        let named = header.set_path(name);
        let named =
            named.and_then(|()| header.set_username(access.map_or("root", |a| a.owner.as_str())));
        let named =
            named.and_then(|()| header.set_groupname(access.map_or("root", |a| a.group.as_str())));
        named.context(WriteSnafu)?;
        header.set_uid(0);
        header.set_gid(0);
        header.set_mode(access.map_or(0o600, |a| a.mode.bits().into()));
        header.set_mtime(now());
        header.set_size(size);
        header.set_cksum();
        self.bytes(header.as_bytes()).await
    }

    async fn pad(&mut self, size: u64, to: u64) -> Result<(), Error> {
        let missing = usize::try_from((to - size % to) % to).unwrap_or_default();
        self.bytes(&vec![0; missing]).await
    }

    async fn whole(
        &mut self,
        name: &str,
        access: Option<&Access>,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.header(name, access, bytes.len() as u64).await?;
        self.bytes(bytes).await?;
        self.pad(bytes.len() as u64, 512).await
    }

    async fn file(
        &mut self,
        name: &str,
        access: Option<&Access>,
        path: &PathBuf,
        identity: Identity,
    ) -> Result<(), Error> {
        let mut file = fs::File::open(path).await.context(ReadSnafu { path })?;
        let metadata = file.metadata().await.context(ReadSnafu { path })?;
        ensure!(
            Identity::from_metadata(&metadata) == identity,
            ChangedSnafu { path }
        );
        file.set_max_buf_size(PIECE);
        let size = metadata.len();
        self.header(name, access, size).await?;
        let (mut buffer, mut left) = (vec![0; PIECE], size);
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let length = file
                .read(&mut buffer[..length])
                .await
                .context(ReadSnafu { path })?;
            ensure!(length > 0, ChangedSnafu { path });
            self.bytes(&buffer[..length]).await?;
            left -= length as u64;
        }
        let metadata = file.metadata().await.context(ReadSnafu { path })?;
        ensure!(
            Identity::from_metadata(&metadata) == identity,
            ChangedSnafu { path }
        );
        self.pad(size, 512).await
    }

    /// Files of one archive in its own order, unpacked on another thread while they are sent.
    async fn archived(
        &mut self,
        archive: &Arc<Archive>,
        wanted: BTreeMap<String, usize>,
        payloads: &BTreeMap<usize, &Payload>,
    ) -> Result<(), Error> {
        enum Part {
            Begin(String),
            Bytes(Vec<u8>),
            End,
        }
        let names: BTreeSet<String> = wanted.keys().cloned().collect();
        let (sender, mut parts) = mpsc::channel(4);
        let reading = Arc::clone(archive);
        let reader = task::spawn_blocking(move || {
            let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
            reading.read_selected(&names, |entry, contents| {
                sender
                    .blocking_send(Part::Begin(entry.path.to_string()))
                    .map_err(gone)?;
                loop {
                    let mut piece = vec![0; PIECE];
                    let length = contents.read(&mut piece)?;
                    if length == 0 {
                        return sender.blocking_send(Part::End).map_err(gone);
                    }
                    piece.truncate(length);
                    sender.blocking_send(Part::Bytes(piece)).map_err(gone)?;
                }
            })
        });
        let (mut size, mut done) = (0, 0);
        while let Some(part) = parts.recv().await {
            match part {
                Part::Begin(entry) => {
                    let number = wanted.get(&entry).copied().unwrap_or_default();
                    let payload = payloads.get(&number);
                    size = payload.map_or(0, |payload| payload.content.size());
                    let access = payload.and_then(|payload| payload.access.as_ref());
                    self.header(&format!("f/{number}"), access, size).await?;
                }
                Part::Bytes(bytes) => self.bytes(&bytes).await?,
                Part::End => {
                    self.pad(size, 512).await?;
                    done += 1;
                }
            }
        }
        // A thread that was not ended early by us ended by itself.
        match reader.await {
            Ok(read) => read.context(ArchiveSnafu)?,
            Err(error) => return Err(io::Error::other(error)).context(WriteSnafu),
        }
        let path = archive.path();
        let name = wanted.keys().next().cloned().unwrap_or_default();
        ensure!(done == wanted.len(), MissingSnafu { path, name });
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.bytes(&[0; 1024]).await?;
        self.pad(self.sent, RECORD).await?;
        self.writer.flush().await.context(WriteSnafu)?;
        self.writer.shutdown().await.context(WriteSnafu)
    }
}

/// New files have the time of their arrival.
fn now() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed();
    since.map_or(0, |since| since.as_secs())
}
