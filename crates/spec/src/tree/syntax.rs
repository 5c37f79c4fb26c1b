//! What to do about text that is not YAML.

use granit_parser::ErrorKind;

/// What to do, by the kind of error and the lines around it.
pub(super) fn remedy(kind: &ErrorKind, lines: &str) -> &'static str {
    if lines.contains(['：', '，', '\u{3000}', '\u{a0}']) {
        return "use the ASCII characters : and , and ASCII spaces, not the full-width ones of an input method";
    }
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => "indent with spaces; YAML does not allow tabs there",
        ErrorKind::CommentNotSeparated => "put a space before the #",
        ErrorKind::UnclosedQuotedScalar => "close the quotes",
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::MisplacedFlowCollectionEnd => "check that every bracket and brace is closed",
        ErrorKind::UnexpectedCharacter { .. } => "put the value in quotes",
        _ => {
            "check the indentation of this line and the one above; a key is followed by a colon and a space, a list item begins with a dash and a space"
        }
    }
}
