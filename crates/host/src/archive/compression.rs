//! Recognises how an archive is packed, by its first bytes, and unpacks it.

use std::{
    fmt,
    io::{self, BufRead, Read},
};

use flate2::bufread::GzDecoder;
use serde::{Deserialize, Serialize};
use zstd::stream::read::Decoder as ZstdDecoder;

use super::{
    flaw::Flaw,
    header::{self, BLOCK},
};

/// How the tar stream is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// One or more gzip members.
    Gzip,
    /// One or more zstd frames.
    Zstd,
}

/// Formats that people bring in place of a tar archive, with what they begin with.
const FOREIGN: [(&[u8], &str); 17] = [
    (b"\x1f\x8b", "compressed twice"),
    (b"\x28\xb5\x2f\xfd", "compressed twice"),
    (b"\xfd7zXZ\0", "xz-compressed"),
    (b"BZh", "bzip2-compressed"),
    (b"PK\x03\x04", "a zip file"),
    (b"PK\x05\x06", "a zip file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip file"),
    (b"Rar!\x1a\x07", "a RAR file"),
    (b"\x04\x22\x4d\x18", "lz4-compressed"),
    (b"LZIP", "lzip-compressed"),
    (b"\x5d\0\0", "lzma-compressed"),
    (b"\x1f\x9d", "compressed with 'compress'"),
    (b"\xed\xab\xee\xdb", "an RPM package"),
    (b"!<arch>\n", "a Debian package or another 'ar' file"),
    (b"07070", "a cpio file"),
    (b"\x7fELF", "a program"),
    (b"<", "an HTML or XML page"),
];

/// What begins like this? `head` is the first block, or all there is.
pub(super) fn recognise(head: &[u8]) -> Result<Compression, Flaw> {
    if head.is_empty() {
        return Err(Flaw::Empty);
    }
    if head.starts_with(b"\x1f\x8b") {
        return Ok(Compression::Gzip);
    }
    if ZstdFrame::begins(head) {
        return Ok(Compression::Zstd);
    }
    expect_tar(head)?;
    Ok(Compression::None)
}

/// Is this the first block of a tar stream, or of one without entries?
pub(super) fn expect_tar(head: &[u8]) -> Result<(), Flaw> {
    let is_tar = <&[u8; BLOCK]>::try_from(head)
        .is_ok_and(|block| header::is_zero(block) || header::checksum_matches(block));
    if is_tar {
        return Ok(());
    }
    // A damaged header still says what it was.
    if head.get(257..262) == Some(b"ustar") {
        let (after, what) = (None, "the checksum of its first header is wrong".into());
        return Err(match head.len() {
            BLOCK => Flaw::Damaged { after, what },
            _ => Flaw::Truncated { after },
        });
    }
    let found = FOREIGN
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map_or("an unknown kind of file", |(_, name)| name);
    Err(Flaw::Foreign { found })
}

/// The unpacked stream of an archive.
pub(super) fn unpack<'a, R: BufRead + 'a>(
    compression: Compression,
    packed: R,
    zstd_window_log: u32,
) -> Box<dyn Read + 'a> {
    match compression {
        Compression::None => Box::new(packed),
        Compression::Gzip => Box::new(Frames::<GzDecoder<R>, R>::new(packed, zstd_window_log)),
        Compression::Zstd => Box::new(Frames::<ZstdFrame<R>, R>::new(packed, zstd_window_log)),
    }
}

/// Bytes after a compressed stream that do not begin another.
#[derive(Debug)]
pub(super) struct NotAFrame;

impl fmt::Display for NotAFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more data after the end of the compressed stream")
    }
}

impl std::error::Error for NotAFrame {}

/// One compressed unit of which a file may hold many, one after another.
pub(super) trait Frame<R>: Read + Sized {
    fn begins(ahead: &[u8]) -> bool;
    fn open(packed: R, zstd_window_log: u32) -> io::Result<Self>;
    fn close(self) -> R;
}

/// Frames to the end of the file, as pigz, pzstd and `cat a.gz b.gz` write them. The libraries'
/// own readers of several frames do not distinguish garbage behind the last one from damage.
pub(super) struct Frames<F, R> {
    state: State<F, R>,
    zstd_window_log: u32,
}

enum State<F, R> {
    Between(R),
    Inside(F),
    Over,
}

impl<F: Frame<R>, R: BufRead> Frames<F, R> {
    fn new(packed: R, zstd_window_log: u32) -> Self {
        Self {
            state: State::Between(packed),
            zstd_window_log,
        }
    }
}

impl<F: Frame<R>, R: BufRead> Read for Frames<F, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            // An error leaves the stream over: nothing is read past damage.
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Ok(0),
                State::Between(mut packed) => {
                    let ahead = packed.fill_buf()?;
                    if ahead.is_empty() {
                        return Ok(0);
                    }
                    if !F::begins(ahead) {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, NotAFrame));
                    }
                    self.state = State::Inside(F::open(packed, self.zstd_window_log)?);
                }
                State::Inside(mut frame) => match frame.read(buf)? {
                    0 => self.state = State::Between(frame.close()),
                    count => {
                        self.state = State::Inside(frame);
                        return Ok(count);
                    }
                },
            }
        }
    }
}

impl<R: BufRead> Frame<R> for GzDecoder<R> {
    // The buffer may end after the first byte; the decoder checks the rest.
    fn begins(ahead: &[u8]) -> bool {
        ahead.first() == Some(&0x1f)
    }

    fn open(packed: R, _: u32) -> io::Result<Self> {
        Ok(Self::new(packed))
    }

    fn close(self) -> R {
        self.into_inner()
    }
}

/// One zstd frame, or one skippable frame as pzstd writes before each.
pub(super) struct ZstdFrame<R: BufRead>(ZstdDecoder<'static, R>);

impl ZstdFrame<io::Empty> {
    fn begins(head: &[u8]) -> bool {
        const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];
        head.starts_with(b"\x28\xb5\x2f\xfd")
            || (head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == SKIPPABLE)
    }
}

impl<R: BufRead> Frame<R> for ZstdFrame<R> {
    fn begins(ahead: &[u8]) -> bool {
        matches!(ahead.first(), Some(0x28 | 0x50..=0x5f))
    }

    fn open(packed: R, zstd_window_log: u32) -> io::Result<Self> {
        let mut decoder = ZstdDecoder::with_buffer(packed)?.single_frame();
        decoder.window_log_max(zstd_window_log)?;
        Ok(Self(decoder))
    }

    fn close(self) -> R {
        self.0.into_inner()
    }
}

impl<R: BufRead> Read for ZstdFrame<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression as Level, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    /// Unpacks through a buffer of few bytes, so that frames and buffers end at odd places.
    fn unpacked(compression: Compression, packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut unpacked = Vec::new();
        let packed = io::BufReader::with_capacity(3, packed);
        unpack(compression, packed, 27).read_to_end(&mut unpacked)?;
        Ok(unpacked)
    }

    #[test]
    fn several_frames_are_one_stream() {
        let skippable = b"\x5e\x2a\x4d\x18\x02\0\0\0ab".to_vec();
        let many = [gzip(b"one"), gzip(b""), gzip(b"two")].concat();
        assert_eq!(unpacked(Compression::Gzip, &many).unwrap(), b"onetwo");
        let many = [skippable.clone(), zstd(b"one"), skippable, zstd(b"two")].concat();
        assert_eq!(recognise(&many).unwrap(), Compression::Zstd);
        assert_eq!(unpacked(Compression::Zstd, &many).unwrap(), b"onetwo");
    }

    #[test]
    fn bytes_behind_the_last_frame_are_told_from_damage() {
        for (compression, packed) in [
            (Compression::Gzip, gzip(b"one")),
            (Compression::Zstd, zstd(b"one")),
        ] {
            let garbage = [&packed[..], b"garbage"].concat();
            let error = unpacked(compression, &garbage).unwrap_err();
            assert!(error.get_ref().unwrap().is::<NotAFrame>());

            let cut = &packed[..packed.len() - 2];
            let error = unpacked(compression, cut).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn a_large_zstd_window_is_refused() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(20).unwrap();
        encoder.write_all(&[7; 3 << 20]).unwrap();
        let packed = encoder.finish().unwrap();
        let within = |log| {
            let mut stream = unpack(Compression::Zstd, &packed[..], log);
            stream.read_to_end(&mut Vec::new())
        };
        assert!(within(20).is_ok());
        assert!(within(19).is_err());
    }

    #[test]
    fn other_formats_are_named() {
        for (magic, name) in FOREIGN {
            let head = [magic, &[0; 600]].concat();
            match expect_tar(&head[..BLOCK]) {
                Err(Flaw::Foreign { found }) => assert_eq!(found, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        let unknown = recognise(b"hello");
        assert!(matches!(unknown, Err(Flaw::Foreign { .. })));
        assert!(matches!(recognise(b""), Err(Flaw::Empty)));
    }
}
