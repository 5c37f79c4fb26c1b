//! From the bytes of a file to a cluster or to diagnostics.

use crate::cluster::{Cluster, Password};
use crate::diagnostic::{Diagnostic, Diagnostics, Need};
use crate::draft::{AccessDraft, Draft};
use crate::source::{Input, Span};
use crate::tree::{Node, parse};
use crate::value::Arch;
use crate::walk::report_expected;
use crate::{eggo, inventory, resolve};

/// The result of reading a file.
#[derive(Clone, Debug)]
pub struct Reading {
    /// `None` if there are errors.
    pub cluster: Option<Cluster>,
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
    /// The files that it names, for the caller to check.
    pub references: Vec<Reference>,
}

impl Reading {
    pub(crate) fn refused(diagnostics: Diagnostics) -> Self {
        Self {
            cluster: None,
            diagnostics,
            references: Vec::new(),
        }
    }
}

/// A file on the control machine that a deploy file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its path; `~/` is the user's home.
    pub path: String,
    /// Decides how the caller checks it.
    pub purpose: Purpose,
    /// Where the deploy file names it.
    pub span: Span,
}

/// The purpose of a file that a deploy file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Packages for an architecture.
    Archive(Arch),
    /// An SSH key.
    PrivateKey,
    /// The file with a password.
    PasswordFile,
    /// A directory of certificate authorities.
    ExternalCa,
}

impl Reference {
    /// The diagnostic for a file that cannot be used for this reason.
    pub fn unusable(&self, reason: &str) -> Diagnostic {
        let (code, what, remedy) = match self.purpose {
            Purpose::Archive(_) => (
                "missing-archive",
                "the archive",
                "put the archive there, or correct the path",
            ),
            Purpose::PrivateKey => (
                "missing-private-key",
                "the SSH key",
                "correct the path, or remove the line to use the SSH agent and your default keys",
            ),
            Purpose::PasswordFile => (
                "missing-password-file",
                "the password file",
                "write the password into that file (chmod 600), or correct the path",
            ),
            Purpose::ExternalCa => (
                "missing-external-ca",
                "the directory of certificate authorities",
                "put ca.crt and ca.key there, or correct the path",
            ),
        };
        let message = format!("{what} {} cannot be used: {reason}", self.path);
        Diagnostic::error(code, self.span, message).remedy(remedy)
    }
}

/// Reads a deploy file of any dialect; for an inventory with variables beside it there is
/// [`inventory::read`].
pub fn read(input: Input<'_>) -> Reading {
    read_for(input, Need::Everything)
}

/// Reads a deploy file for a purpose. With [`Need::Access`], errors in other parts become warnings, and these parts have
/// their default values.
pub fn read_for(input: Input<'_>, need: Need) -> Reading {
    let mut diagnostics = Diagnostics::for_need(need);
    if inventory::ini::refuse(input, &mut diagnostics) {
        return Reading::refused(diagnostics);
    }
    let Some(root) = parse(input, &mut diagnostics) else {
        return Reading::refused(diagnostics);
    };
    if root.entries().is_none() {
        report_expected("a section with keys", &root, &mut diagnostics);
        return Reading::refused(diagnostics);
    }
    if let (Some((key, _)), Some(_)) = (root.entry("apiVersion"), root.entry("kind")) {
        diagnostics.push(
            Diagnostic::error(
                "kubernetes-object",
                key.span,
                "this is a Kubernetes object, not a deploy file",
            )
            .remedy("apply it with kubectl, or name the deploy file"),
        );
        return Reading::refused(diagnostics);
    }
    if inventory::is_inventory(&root) {
        return inventory::read_alone(&root, input, diagnostics);
    }
    read_eggo(&root, input, diagnostics)
}

fn read_eggo(root: &Node, input: Input<'_>, mut diagnostics: Diagnostics) -> Reading {
    let draft = eggo::read(root, input, &mut diagnostics);
    finish(&draft, diagnostics)
}

/// Resolves a draft, whichever dialect filled it.
pub(crate) fn finish(draft: &Draft, mut diagnostics: Diagnostics) -> Reading {
    let cluster = resolve::resolve(draft, &mut diagnostics);
    Reading {
        cluster,
        diagnostics,
        references: references(draft),
    }
}

fn references(draft: &Draft) -> Vec<Reference> {
    let archives = draft.archives.iter().map(|(arch, path)| Reference {
        path: path.value.clone(),
        purpose: Purpose::Archive(arch.value),
        span: path.span,
    });
    let authorities = draft.external_ca.given().map(|path| Reference {
        path: path.value.to_string(),
        purpose: Purpose::ExternalCa,
        span: path.span,
    });
    let every = std::iter::once(&draft.access);
    let single = draft.hosts().map(|(_, host)| &host.access);
    let mut all: Vec<_> = archives
        .chain(authorities)
        .chain(every.chain(single).flat_map(secrets))
        .collect();
    let mut seen = std::collections::HashSet::new();
    all.retain(|one| seen.insert((one.path.clone(), one.purpose)));
    all
}

fn secrets(access: &AccessDraft) -> impl Iterator<Item = Reference> + '_ {
    let key = access.private_key.given().map(|path| Reference {
        path: path.value.to_string(),
        purpose: Purpose::PrivateKey,
        span: path.span,
    });
    let passwords = [&access.password, &access.sudo_password];
    let files = passwords.into_iter().filter_map(|field| {
        let given = field.given()?;
        password_file(&given.value, given.span)
    });
    let jumps = access.bastions.given().into_iter().flat_map(|given| {
        given.value.iter().flat_map(|jump| {
            let key = jump.private_key.as_ref().map(|path| Reference {
                path: path.to_string(),
                purpose: Purpose::PrivateKey,
                span: given.span,
            });
            let password = jump.password.as_ref();
            let file = password.and_then(|password| password_file(password, given.span));
            key.into_iter().chain(file)
        })
    });
    key.into_iter().chain(files).chain(jumps)
}

fn password_file(password: &Password, span: Span) -> Option<Reference> {
    let Password::File(path) = password else {
        return None;
    };
    Some(Reference {
        path: path.to_string(),
        purpose: Purpose::PasswordFile,
        span,
    })
}
