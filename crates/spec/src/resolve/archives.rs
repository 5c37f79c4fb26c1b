//! Every machine that needs an archive has one for its processor.

use std::collections::HashSet;

use super::RelatedTo;
use super::lists::needs_archive;
use super::machines::Fleet;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::draft::Draft;
use crate::value::Arch;

pub(super) fn check(draft: &Draft, fleet: &Fleet, diagnostics: &mut Diagnostics) {
    if draft.archives.is_empty() {
        require_any(draft, diagnostics);
        return;
    }
    let packed: HashSet<Arch> = draft.archives.iter().map(|(arch, _)| arch.value).collect();
    let mut reported: HashSet<Arch> = HashSet::new();
    for merged in &fleet.all {
        let arch = merged.arch();
        if packed.contains(&arch) || !reported.insert(arch) {
            continue;
        }
        let span = merged.host.arch.span().unwrap_or(merged.address.span);
        let message = format!(
            "{} is {arch}, but there is no archive for {arch}",
            merged.address.value
        );
        let key = match (draft.dialect, arch) {
            (crate::cluster::Dialect::Classic, Arch::Arm64) => "armsrc to package-src".to_owned(),
            (crate::cluster::Dialect::Classic, Arch::Amd64) => "x86src to package-src".to_owned(),
            _ => format!("{arch} to install.package-source.srcpath"),
        };
        diagnostics.push(
            Diagnostic::error("no-archive", span, message)
                .related_to(draft.archives_section, "the archives")
                .remedy(format!("add {key}, or correct the machine's arch")),
        );
    }
}

/// Without any archive, nothing can come from one.
fn require_any(draft: &Draft, diagnostics: &mut Diagnostics) {
    let first = draft
        .lists
        .iter()
        .flat_map(|list| &list.items)
        .find(|item| needs_archive(&item.value))
        .map(|item| item.span)
        .or_else(|| draft.addons.first().map(|addon| addon.span));
    if let Some(span) = first {
        diagnostics.push(
            Diagnostic::error(
                "no-archive",
                span,
                "this comes from an archive, but no archive is given",
            )
            .related_to(draft.archives_section, "no archive here")
            .remedy("name the archives in install.package-source.srcpath, or use type repo"),
        );
    }
}
