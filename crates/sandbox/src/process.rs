//! Runs a program with input and collects its output.

use std::{
    io,
    process::{Output, Stdio},
};

use tokio::{io::AsyncWriteExt as _, process::Command};

/// Runs a prepared command to its end. Input is written while output is read: one after the
/// other, a program that answers as it reads would wait for us and we for it.
pub(crate) async fn run(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    let mut child = command
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdin = child.stdin.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program may end before it has read everything; its exit status says why.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let ((), output) = tokio::join!(write, child.wait_with_output());
    output
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_program_that_answers_as_it_reads_does_not_hang() {
        let input = vec![b'x'; 1 << 20];
        let mut cat = Command::new("cat");
        let output = tokio::time::timeout(Duration::from_secs(20), run(&mut cat, &input));
        let output = output.await.expect("cat waits for a reader").unwrap();
        assert_eq!(output.stdout, input);
    }

    #[tokio::test]
    async fn a_program_that_does_not_read_still_tells_how_it_ended() {
        let input = vec![b'x'; 1 << 20];
        let mut program = Command::new("sh");
        program.args(["-c", "echo enough >&2; exit 3"]);
        let output = run(&mut program, &input).await.unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.stderr, b"enough\n");
    }
}
