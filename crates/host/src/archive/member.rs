//! Walks a tar stream: headers, the extended headers before them, and the end.

use std::io::Read;

use tar::Header;

use super::{
    compression::expect_tar,
    flaw::{Fault, Flaw},
    header::{self, BLOCK, Pax},
    limits::Limits,
    name,
    stream::Stream,
};

/// One entry as its headers describe it, names not yet checked.
pub(super) struct Member {
    pub(super) name: Vec<u8>,
    pub(super) shape: Shape,
    pub(super) mode: u32,
    pub(super) mtime: i64,
}

pub(super) enum Shape {
    /// The next bytes of the stream are its contents.
    File {
        size: u64,
    },
    Directory,
    Symlink {
        target: Vec<u8>,
    },
    HardLink {
        target: Vec<u8>,
    },
}

/// What stood in extended headers before an entry's own header.
#[derive(Default)]
struct Extensions {
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    pax: Option<Pax>,
}

/// The next entry, or nothing at the archive's end. The contents of the one before, with their
/// padding, must have been read.
pub(super) fn next<R: Read>(
    stream: &mut Stream<R>,
    limits: &Limits,
) -> Result<Option<Member>, Flaw> {
    let mut extensions = Extensions::default();
    loop {
        let Some(block) = header_block(stream)? else {
            return if extensions.is_empty() {
                end(stream).map(|()| None)
            } else {
                Err(stream.damaged("an extended header belongs to no entry"))
            };
        };
        let own_name = Header::from_byte_slice(&block).path_bytes().into_owned();
        let shown = name::display(extensions.name().unwrap_or(&own_name));
        let refuse = |fault| Flaw::Entry {
            entry: shown.clone(),
            fault,
        };
        let flag = block[156];
        if !matches!(flag, b'L' | b'K' | b'x' | b'g' | b'V') {
            return extensions.apply(&block, own_name).map(Some).map_err(refuse);
        }

        let size = header::size(&block).map_err(refuse)?;
        if size > limits.extension {
            return Err(refuse(Fault::Extension { size }));
        }
        let mut body = Vec::new();
        stream.each_piece(size, &mut [0; 4096], |piece| body.extend_from_slice(piece))?;
        stream.skip_padding()?;
        extensions.add(flag, body).map_err(refuse)?;
    }
}

fn header_block<R: Read>(stream: &mut Stream<R>) -> Result<Option<[u8; BLOCK]>, Flaw> {
    let first = stream.position() == 0;
    let mut block = [0; BLOCK];
    let filled = stream.fill(&mut block)?;
    match filled {
        0 if first => return Err(Flaw::Empty),
        _ if first => expect_tar(&block[..filled])?,
        BLOCK => {}
        _ => return Err(stream.truncated()),
    }
    if header::is_zero(&block) {
        return Ok(None);
    }
    if !header::checksum_matches(&block) {
        return Err(stream.damaged("the checksum of a header is wrong"));
    }
    Ok(Some(block))
}

/// Reads to the end, which also has the decompressor compare its checksum. Tools fill the last
/// record with zeros, in whatever number.
fn end<R: Read>(stream: &mut Stream<R>) -> Result<(), Flaw> {
    let mut buffer = [0; 8192];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count if header::is_zero(&buffer[..count]) => {}
            _ => return Err(Flaw::Trailing),
        }
    }
}

impl Extensions {
    fn is_empty(&self) -> bool {
        self.long_name.is_none() && self.long_link.is_none() && self.pax.is_none()
    }

    fn name(&self) -> Option<&[u8]> {
        let pax = self.pax.as_ref().and_then(|pax| pax.path.as_deref());
        pax.or(self.long_name.as_deref())
    }

    fn add(&mut self, flag: u8, body: Vec<u8>) -> Result<(), Fault> {
        let twice = match flag {
            b'L' => self.long_name.replace(c_string(body)).is_some(),
            b'K' => self.long_link.replace(c_string(body)).is_some(),
            b'x' => self.pax.replace(Pax::read(&body)?).is_some(),
            // For all entries that follow: comments and owners, which are of no use here.
            b'g' if Pax::read(&body)?.names_one_entry() => {
                let what = "gives one path, size or link target to all entries";
                return Err(Fault::BadExtension { what });
            }
            // Also a volume's label.
            _ => false,
        };
        let pax = self.pax.as_ref();
        let names = self.long_name.is_some() && pax.is_some_and(|pax| pax.path.is_some());
        let links = self.long_link.is_some() && pax.is_some_and(|pax| pax.link.is_some());
        if twice || names || links {
            let what = "has a duplicate record";
            return Err(Fault::BadExtension { what });
        }
        Ok(())
    }

    fn apply(self, block: &[u8; BLOCK], own_name: Vec<u8>) -> Result<Member, Fault> {
        let pax = self.pax.unwrap_or_default();
        if pax.sparse {
            return Err(Fault::Sparse);
        }
        let name = pax.path.or(self.long_name).unwrap_or(own_name);
        let size = pax.size.map_or_else(|| header::size(block), Ok)?;
        let own_link = || {
            let link = Header::from_byte_slice(block).link_name_bytes();
            link.map_or_else(Vec::new, std::borrow::Cow::into_owned)
        };
        let target = || pax.link.or(self.long_link).unwrap_or_else(own_link);
        let shape = match block[156] {
            // Before there were types, a slash at the end made a directory.
            b'0' | 0 if name.ends_with(b"/") => Shape::Directory,
            b'0' | b'7' | 0 => Shape::File { size },
            b'1' => Shape::HardLink { target: target() },
            b'2' => Shape::Symlink { target: target() },
            b'3' => return Err(special("character device")),
            b'4' => return Err(special("block device")),
            b'5' => Shape::Directory,
            b'6' => return Err(special("named pipe")),
            b'S' => return Err(Fault::Sparse),
            flag => return Err(Fault::UnknownType { flag }),
        };
        if size > 0 && !matches!(shape, Shape::File { .. }) {
            return Err(Fault::Contents { size });
        }
        Ok(Member {
            name,
            shape,
            mode: header::mode(block)?,
            mtime: pax.mtime.unwrap_or_else(|| header::mtime(block)),
        })
    }
}

fn special(what: &'static str) -> Fault {
    Fault::Special { what }
}

/// Long names end with a zero byte.
fn c_string(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}
