//! How much an archive may ask of the control machine before it is refused.

/// Bounds on what an archive may hold. The default suits offline packages of up to about 20 GiB
/// packed; time and memory that an archive can cost follow from these numbers alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Entries of any kind.
    pub entries: usize,
    /// Bytes after decompression, tar headers included.
    pub unpacked: u64,
    /// Bytes after decompression that are never held against the ratio.
    pub ratio_allowance: u64,
    /// How many times larger than packed an archive may become beyond the allowance.
    pub ratio: u64,
    /// Bytes of one path, and of one link's target.
    pub path: usize,
    /// Bytes of one component of a path.
    pub component: usize,
    /// Components of one path, and of one link's target.
    pub depth: usize,
    /// Bytes of all paths and link targets together: these are kept in memory.
    pub names: usize,
    /// Bytes of one extended header (PAX records or a GNU long name).
    pub extension: u64,
    /// Names that one file may have by hard links.
    pub links: usize,
    /// Components walked to see where all symbolic links lead.
    pub link_steps: u64,
    /// Base-two logarithm of the window that a zstd stream may ask for, which is memory.
    pub zstd_window_log: u32,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        const GIB: u64 = 1 << 30;
        Self {
            entries: 200_000,
            unpacked: 64 * GIB,
            ratio_allowance: GIB,
            ratio: 100,
            path: 4096,
            component: 255,
            depth: 64,
            names: 64 << 20,
            extension: MIB,
            links: 256,
            link_steps: 4_000_000,
            zstd_window_log: 27,
        }
    }
}

impl Limits {
    /// How far an archive of this packed size may unpack.
    pub(super) fn budget(&self, packed: u64) -> u64 {
        let by_ratio = packed
            .saturating_mul(self.ratio)
            .saturating_add(self.ratio_allowance);
        self.unpacked.min(by_ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_grows_with_the_packed_size_up_to_the_total() {
        let limits = Limits {
            unpacked: 1000,
            ratio_allowance: 100,
            ratio: 10,
            ..Limits::default()
        };
        assert_eq!(limits.budget(0), 100);
        assert_eq!(limits.budget(5), 150);
        assert_eq!(limits.budget(u64::MAX), 1000);
    }
}
