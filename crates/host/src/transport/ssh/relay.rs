//! A stream through a machine whose sshd forbids forwarding: a command there that carries it.
//!
//! The ban keeps users from using a machine as a way elsewhere; a user who may run commands as root on it needs none. What
//! goes through is encrypted from end to end by those who use the stream.

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    time::timeout,
};

use super::connection::SshConnection;
use crate::{
    quote::quote,
    transport::{Connection as _, Error, Exit, Joined, Running, Stream},
};

/// Says that the stream begins: a login shell may print something before.
const BEGIN: &str = "hatchery: the stream begins";

/// The maximum length of what precedes that line, in bytes.
const GREETING: u64 = 64 * 1024;

/// `bash` opens connections by itself, and is on every distribution that we know. When the server ends, the reading
/// `cat` does, and with it the output; when we end, the writing one does, and takes the other along.
const CARRY: &str = r#"exec 3<>"/dev/tcp/$1/$2" || exit 1
echo "$3"
exec 5>&1 >/dev/null 2>&1
cat <&3 >&5 5>&- &
exec 5>&-
cat >&3
kill $!"#;

pub(super) async fn stream(
    connection: &SshConnection,
    host: &str,
    port: u16,
) -> Result<Box<dyn Stream>, Error> {
    let refused = |reason: String, forbidden| Error::ForwardRefused {
        host: connection.name().into(),
        to: format!("{host}:{port}"),
        reason,
        forbidden,
    };
    let words = [CARRY, "relay", host, &port.to_string(), BEGIN].map(quote);
    let command = format!("exec bash -c {}", words.join(" "));
    let Running {
        input,
        output,
        mut errors,
        exit,
    } = connection.exec(&command).await?;
    let mut output = BufReader::new(output);
    let begun = async {
        let mut line = String::new();
        let mut greeting = (&mut output).take(GREETING);
        while greeting.read_line(&mut line).await.unwrap_or_default() > 0 {
            if line.trim_end() == BEGIN {
                return true;
            }
            line.clear();
        }
        false
    };
    let after = connection.channel_timeout();
    let begun = timeout(after, begun).await;
    match begun {
        Ok(true) => Ok(Box::new(Joined {
            reader: output,
            writer: input,
        })),
        Err(_late) => Err(Error::Deadline {
            host: connection.name().into(),
            step: "opening a stream",
            after,
        }),
        Ok(false) => {
            drop((input, output));
            let mut said = Vec::new();
            let _ = timeout(after, (&mut errors).take(GREETING).read_to_end(&mut said)).await;
            Err(match exit.await? {
                Exit::Code(1) if said.ends_with(b"refused\n") => {
                    refused("nothing answers there".into(), false)
                }
                Exit::Code(127) => refused(
                    "its sshd forbids forwarding, and there is no bash to carry a stream".into(),
                    true,
                ),
                end => {
                    let said = String::from_utf8_lossy(&said);
                    let last = super::handshake::printable(said.lines().last().unwrap_or_default());
                    refused(
                        format!("its sshd forbids forwarding, and bash cannot: {end} {last}"),
                        false,
                    )
                }
            })
        }
    }
}
