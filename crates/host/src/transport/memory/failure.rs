//! What goes wrong on a machine in memory itself. What goes wrong on the way to it is
//! [`crate::transport::faulty`]'s.

/// Something that goes wrong. A step that finds everything as it should be is not begun, and so nothing goes wrong
/// with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Failure {
    /// A step fails each time, after having printed this. In an undo the resource is left.
    Fail {
        at: At,
        /// Its last words.
        output: String,
    },
    /// The script stops for good in the middle of a step, once. It keeps the machine's lock until a later run
    /// ends it, which that does when the connection is gone.
    Hang { at: At },
    /// The connection drops when a step begins, once. The script goes on to its end.
    Drop { at: At },
    /// The machine loses its power just before a step, once, and is back at once.
    DieBefore { at: At },
    /// The same when the step is done and not yet reported.
    DieAfter { at: At },
    /// The disk is full after this number of bytes of each stream.
    DiskFull { after: u64 },
    /// Another run is at work, and its control process is connected.
    Busy {
        /// The other run's name.
        run: String,
    },
}

/// Where a failure happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// At a line of the task's list, by its number; a directory that has to be made for an operation is one of its own.
    Step(usize),
    /// At the first step whose title contains this, such as a path.
    Titled(String),
}

impl From<usize> for At {
    fn from(number: usize) -> Self {
        Self::Step(number)
    }
}

impl From<&str> for At {
    fn from(title: &str) -> Self {
        Self::Titled(title.into())
    }
}

impl At {
    fn is(&self, number: Option<usize>, title: &str) -> bool {
        match self {
            Self::Step(step) => number == Some(*step),
            Self::Titled(part) => title.contains(part.as_str()),
        }
    }
}

/// A moment of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    Begun,
    Done,
}

/// What happens at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Fail(String),
    Hang,
    Drop,
    Die,
}

/// The first failure of a moment; one that happens once is over with it.
pub(super) fn happening(
    failures: &mut Vec<Failure>,
    number: Option<usize>,
    title: &str,
    moment: Moment,
) -> Option<Happening> {
    let meant = |failure: &Failure| match (failure, moment) {
        (Failure::DieBefore { at }, Moment::Before)
        | (Failure::Fail { at, .. } | Failure::Hang { at } | Failure::Drop { at }, Moment::Begun)
        | (Failure::DieAfter { at }, Moment::Done) => at.is(number, title),
        _ => false,
    };
    let place = failures.iter().position(meant)?;
    if let Failure::Fail { output, .. } = &failures[place] {
        return Some(Happening::Fail(output.clone()));
    }
    match failures.remove(place) {
        Failure::Hang { .. } => Some(Happening::Hang),
        Failure::Drop { .. } => Some(Happening::Drop),
        _ => Some(Happening::Die),
    }
}
