//! What to do about text that is not YAML.

use granit_parser::ErrorKind;

/// What to do, by the kind of error and the lines around it.
pub(super) fn remedy(kind: &ErrorKind, lines: &str) -> &'static str {
    if lines.contains(['：', '，', '\u{3000}', '\u{a0}']) {
        return "write : and , and spaces of the ASCII kind, not the full-width ones that an input method gives";
    }
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => "indent with spaces; YAML does not allow tabs there",
        ErrorKind::CommentNotSeparated => "put a space before the #",
        ErrorKind::UnclosedQuotedScalar => "close the quotation",
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::MisplacedFlowCollectionEnd => {
            "see that every bracket and brace has its partner"
        }
        ErrorKind::UnexpectedCharacter { .. } => "put the value in quotes",
        _ => {
            "look at the indentation here and in the line above; a key is followed by a colon and a space, a list item begins with a dash and a space"
        }
    }
}
