//! One tar header block and the PAX records that may extend it.

use super::flaw::Fault;

/// The unit of tar: headers are one block, contents are padded to whole ones.
pub(super) const BLOCK: usize = 512;

pub(super) fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Whether a block is a tar header: its bytes, with the checksum's own as spaces, add up to it.
pub(super) fn checksum_matches(block: &[u8; BLOCK]) -> bool {
    let field = 148..156;
    let sum: u64 = (0..BLOCK)
        .map(|at| if field.contains(&at) { b' ' } else { block[at] })
        .map(u64::from)
        .sum();
    number(&block[field]) == Some(sum)
}

/// The file's size.
pub(super) fn size(block: &[u8; BLOCK]) -> Result<u64, Fault> {
    number(&block[124..136]).ok_or(Fault::BadNumber { field: "size" })
}

/// The permission bits.
pub(super) fn mode(block: &[u8; BLOCK]) -> Result<u32, Fault> {
    number(&block[100..108])
        .and_then(|mode| u32::try_from(mode & 0o777).ok())
        .ok_or(Fault::BadNumber { field: "mode" })
}

/// The time of last change. One before 1970 or beyond reason is 1970: nothing depends on it.
pub(super) fn mtime(block: &[u8; BLOCK]) -> i64 {
    number(&block[136..148])
        .and_then(|seconds| i64::try_from(seconds).ok())
        .unwrap_or(0)
}

/// Octal digits between spaces and zero bytes; or, with the first bit set, a binary number.
fn number(field: &[u8]) -> Option<u64> {
    if let [first, rest @ ..] = field
        && first & 0x80 != 0
    {
        let seed = u64::from(first & 0x7f);
        return rest.iter().try_fold(seed, |value, byte| {
            Some(value.checked_mul(256)? | u64::from(*byte))
        });
    }
    let text = field.trim_ascii_start();
    let end = text
        .iter()
        .position(|byte| matches!(byte, 0 | b' '))
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if !rest.iter().all(|byte| matches!(byte, 0 | b' ')) {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'7' => Some(value.checked_mul(8)? | u64::from(digit - b'0')),
        _ => None,
    })
}

/// What PAX records say that matters here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) mtime: Option<i64>,
    pub(super) sparse: bool,
}

impl Pax {
    /// Reads records of the form `LENGTH KEY=VALUE\n`, where the length counts the whole record.
    /// Values may hold any byte, so the length alone says where a record ends.
    pub(super) fn read(mut records: &[u8]) -> Result<Self, Fault> {
        let mut pax = Self::default();
        while !records.is_empty() {
            let malformed = Fault::BadExtension {
                what: "is not a list of PAX records",
            };
            let Some((key, value, rest)) = record(records) else {
                return Err(malformed);
            };
            records = rest;
            match key {
                b"path" => once(&mut pax.path, value.to_vec())?,
                b"linkpath" => once(&mut pax.link, value.to_vec())?,
                b"size" => once(&mut pax.size, decimal(value).ok_or(malformed)?)?,
                b"mtime" => pax.mtime = seconds(value),
                key if key.starts_with(b"GNU.sparse.") => pax.sparse = true,
                _ => {}
            }
        }
        Ok(pax)
    }

    /// Whether it speaks of one entry alone, which makes no sense in a header for all.
    pub(super) fn names_one_entry(&self) -> bool {
        self.path.is_some() || self.link.is_some() || self.size.is_some() || self.sparse
    }
}

fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().take(20).position(|byte| *byte == b' ')?;
    let length = usize::try_from(decimal(&records[..space])?).ok()?;
    let (record, rest) = records.split_at_checked(length)?;
    let pair = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    Some((&pair[..equals], &pair[equals + 1..], rest))
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), Fault> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Fault::BadExtension {
            what: "has a duplicate record",
        }),
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whole seconds of a time with a fraction, towards the past.
fn seconds(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole_seconds: i64 = whole.parse().ok()?;
    let earlier = whole.starts_with('-') && fraction.bytes().any(|digit| digit != b'0');
    whole_seconds.checked_sub(i64::from(earlier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_all_spellings() {
        for (field, value) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"644     ", Some(0o644)),
            (b"77777777", Some(0o77_777_777)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"        ", Some(0)),
            (b"\x80\0\0\0\0\0\x01\x02", Some(258)),
            (b"0000648\0", None),
            (b"-000644\0", None),
            (b"64\0 44\0\0", None),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ] {
            assert_eq!(number(field), value, "{}", field.escape_ascii());
        }
    }

    #[test]
    fn pax_values_may_hold_any_byte() {
        let pax =
            Pax::read(b"29 SCHILY.xattr.user.a=\n\0=\n\xff\n14 path=a b=c\n11 size=42\n").unwrap();
        assert_eq!(pax.path.as_deref(), Some(&b"a b=c"[..]));
        assert_eq!(pax.size, Some(42));
        assert!(!pax.sparse);
    }

    #[test]
    fn malformed_pax_records_are_refused() {
        for records in [
            &b"path=a\n"[..],
            b"10 path=a",
            b"99 path=a\n",
            b"0 path=a\n",
            b"2 path=a\n",
            b"9 path=a\n\n",
            b"-10 path=a\n",
            b"99999999999999999999999 path=a\n",
            b"7 path\n",
            b"11 size=-1\n",
            b"10 path=a\n10 path=b\n",
        ] {
            assert!(Pax::read(records).is_err(), "{}", records.escape_ascii());
        }
    }

    #[test]
    fn times_lose_their_fraction() {
        assert_eq!(seconds(b"12.9"), Some(12));
        assert_eq!(seconds(b"-1.5"), Some(-2));
        assert_eq!(seconds(b"-0.5"), Some(-1));
        assert_eq!(seconds(b"-3.0"), Some(-3));
        assert_eq!(seconds(b"soon"), None);
    }
}
