//! A task's stream as it arrives on a machine in memory.

use std::{collections::BTreeMap, sync::Arc};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::tree::Looks;

/// Bytes that came for a step.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) looks: Looks,
    pub(super) bytes: Arc<[u8]>,
}

/// What a run has received.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) script: String,
    /// By the number of the step.
    pub(super) contents: BTreeMap<usize, Content>,
}

const BLOCK: usize = 512;

/// Unpacks a stream. Fails in the words of tar. All of it is read in any case, as tar does; `taken` counts.
pub(super) async fn receive(
    input: &mut (impl AsyncRead + Unpin),
    room: Option<u64>,
    taken: &mut u64,
) -> Result<Incoming, String> {
    let mut incoming = Incoming::default();
    let mut failed = None;
    let mut stored = 0;
    let mut complete = false;
    let mut block = [0; BLOCK];
    loop {
        if input.read_exact(&mut block).await.is_err() {
            failed.get_or_insert("tar: Unexpected EOF in archive".to_owned());
            break;
        }
        *taken += BLOCK as u64;
        if block.iter().all(|byte| *byte == 0) {
            *taken += rest(input).await;
            break;
        }
        let Some(entry) = Entry::read(&block) else {
            failed.get_or_insert("tar: This does not look like a tar archive".to_owned());
            *taken += rest(input).await;
            break;
        };
        let mut bytes = Vec::new();
        let length = entry.size.div_ceil(BLOCK as u64) * BLOCK as u64;
        let read = (&mut *input).take(length).read_to_end(&mut bytes).await;
        *taken += bytes.len() as u64;
        if read.is_err() || bytes.len() as u64 != length {
            failed.get_or_insert("tar: Unexpected EOF in archive".to_owned());
            break;
        }
        bytes.truncate(usize::try_from(entry.size).unwrap_or(usize::MAX));
        stored += entry.size;
        if room.is_some_and(|room| stored > room) {
            let complaint = format!("tar: {}: Cannot write: No space left on device", entry.name);
            failed.get_or_insert(complaint);
            continue;
        }
        match entry.name.as_str() {
            "run" => incoming.script = String::from_utf8(bytes).unwrap_or_default(),
            "end" => complete = true,
            name => {
                if let Some(number) = name
                    .strip_prefix("f/")
                    .and_then(|number| number.parse().ok())
                {
                    let content = Content {
                        looks: entry.looks,
                        bytes: bytes.into(),
                    };
                    incoming.contents.insert(number, content);
                }
            }
        }
    }
    match failed {
        Some(complaint) => Err(complaint),
        None if !complete => Err(String::new()),
        None => Ok(incoming),
    }
}

struct Entry {
    name: String,
    size: u64,
    looks: Looks,
}

impl Entry {
    fn read(block: &[u8; BLOCK]) -> Option<Self> {
        let header = tar::Header::from_byte_slice(block);
        let word = |word: Option<&str>| Box::from(word.unwrap_or("root"));
        Some(Self {
            name: String::from_utf8_lossy(&header.path_bytes()).into_owned(),
            size: header.entry_size().ok()?,
            looks: Looks {
                mode: header.mode().ok()?,
                owner: word(header.username().ok()?),
                group: word(header.groupname().ok()?),
            },
        })
    }
}

/// Reads to the end; how many bytes that were.
async fn rest(input: &mut (impl AsyncRead + Unpin)) -> u64 {
    let mut sink = tokio::io::sink();
    tokio::io::copy(input, &mut sink).await.unwrap_or_default()
}
