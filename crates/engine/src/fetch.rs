//! Manifests from the web, fetched on the control machine before anything is changed.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio_rustls::rustls::crypto::aws_lc_rs;

use hatchery_host::content::Hash;

use crate::finding::Finding;

/// More than any manifest has.
const LARGEST: usize = 8 << 20;
/// So often a server may send us elsewhere.
const REDIRECTS: usize = 5;
/// The timeout for one manifest, wherever it comes from.
const DEADLINE: Duration = Duration::from_secs(60);

/// Fetches texts; servers are known by the system's certificates.
pub(crate) struct Fetcher {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    deadline: Duration,
}

impl Fetcher {
    /// # Errors
    /// When the system has no certificates of authorities.
    pub(crate) fn new() -> Result<Self, Finding> {
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(aws_lc_rs::default_provider())
            .map_err(|error| {
                Finding::package(
                    format!("cannot load the certificate authorities to verify servers of manifests: {error}"),
                    "install the package ca-certificates here",
                )
            })?;
        let connector = connector.https_or_http().enable_http1().build();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            deadline: DEADLINE,
        })
    }

    /// What a URL holds. One with `#sha256=` behind it has to hold what gives this sum.
    ///
    /// # Errors
    /// What the server, the network or the text is not.
    pub(crate) async fn text(&self, url: &str) -> Result<String, Finding> {
        let (url, checksum) = match url.split_once("#sha256=") {
            Some((url, checksum)) => (url, Some(checksum)),
            None => (url, None),
        };
        let text = self.fetched(url).await?;
        let found = Hash::digest(text.as_bytes());
        match checksum.filter(|wanted| *wanted != found.as_str()) {
            None => Ok(text),
            Some(wanted) => Err(Finding::package(
                format!(
                    "{url} is not what it should be: its checksum is {}, not {wanted}",
                    found.as_str()
                ),
                "find out why it changed; correct the checksum in the deploy file if the change is intended",
            )),
        }
    }

    async fn fetched(&self, url: &str) -> Result<String, Finding> {
        let fetched = tokio::time::timeout(self.deadline, self.follow(url)).await;
        let late = || format!("it took longer than {} s", self.deadline.as_secs());
        fetched.unwrap_or_else(|_| Err(late())).map_err(|reason| {
            Finding::package(
                format!("cannot fetch {url}: {reason}"),
                "correct the URL or make it reachable from here, or put the manifest into the archive's file/ directory and \
                 list it by its name there",
            )
        })
    }

    async fn follow(&self, url: &str) -> Result<String, String> {
        let mut uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        for _ in 0..=REDIRECTS {
            let request = Request::get(&uri)
                .header(header::USER_AGENT, "hatchery")
                .body(Empty::new())
                .map_err(|error| error.to_string())?;
            let answer = self.client.request(request).await;
            let answer = answer.map_err(|error| last(&error))?;
            let status = answer.status();
            if status.is_redirection() {
                let place = answer.headers().get(header::LOCATION);
                let place = place.and_then(|place| place.to_str().ok());
                uri = elsewhere(
                    &uri,
                    place.ok_or("the server sends elsewhere, not saying where")?,
                )?;
                continue;
            }
            if !status.is_success() {
                return Err(format!("the server answers {status}"));
            }
            let body = Limited::new(answer.into_body(), LARGEST).collect().await;
            let body = body.map_err(|error| match error.is::<LengthLimitError>() {
                true => format!("it is larger than {} MiB", LARGEST >> 20),
                false => last(error.as_ref()),
            })?;
            return String::from_utf8(body.to_bytes().into())
                .map_err(|_| "it is not valid UTF-8".to_owned());
        }
        Err(format!("it was sent elsewhere more than {REDIRECTS} times"))
    }
}

/// Where an answer sends us: never from https to http, and to nothing but these.
fn elsewhere(from: &Uri, place: &str) -> Result<Uri, String> {
    let wrong = || "the server sends elsewhere, to nothing that could be fetched".to_owned();
    let place: Uri = place.parse().map_err(|_| wrong())?;
    let mut parts = place.into_parts();
    if parts.authority.is_none() {
        let path = parts.path_and_query.as_ref();
        // Paths that are not absolute are no longer sent by anybody.
        if !path.is_some_and(|path| path.as_str().starts_with('/')) {
            return Err(wrong());
        }
        parts.authority = from.authority().cloned();
        parts.scheme = None;
    }
    parts.scheme = parts.scheme.or_else(|| from.scheme().cloned());
    let to = Uri::from_parts(parts).map_err(|_| wrong())?;
    match (from.scheme_str(), to.scheme_str()) {
        (_, Some("https")) | (Some("http"), Some("http")) => Ok(to),
        (_, Some("http")) => {
            Err("the server sends from https to http, where anybody may answer".into())
        }
        _ => Err(wrong()),
    }
}

/// The last reason is the most specific: the others only say which part failed.
fn last(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };
    use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

    use super::*;

    /// A server that answers by the path.
    async fn serve() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        });
        format!("http://{address}")
    }

    async fn answer(mut stream: TcpStream) {
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        let request = String::from_utf8_lossy(&request[..length]).into_owned();
        let path = request.split(' ').nth(1).unwrap_or_default();
        let head = |status: &str, more: &str| format!("HTTP/1.1 {status}\r\n{more}\r\n");
        let text = match path {
            "/good" => head("200 OK", "Content-Length: 8\r\n") + "kind: A\n",
            "/moved" => head("302 Found", "Location: /good\r\nContent-Length: 0\r\n"),
            "/round" => head("302 Found", "Location: /round\r\nContent-Length: 0\r\n"),
            "/file" => head(
                "302 Found",
                "Location: file:///etc/passwd\r\nContent-Length: 0\r\n",
            ),
            "/lost" => head("301 Moved", "Content-Length: 0\r\n"),
            "/large" => head("200 OK", "Connection: close\r\n") + &"# much\n".repeat((9 << 20) / 7),
            "/hang" => return tokio::time::sleep(Duration::from_secs(60)).await,
            _ => head("404 Not Found", "Content-Length: 0\r\n"),
        };
        // Who has enough goes away.
        let _ = stream.write_all(text.as_bytes()).await;
        let _ = stream.shutdown().await;
    }

    #[tokio::test]
    async fn a_manifest_is_fetched_or_the_reason_told() {
        let server = serve().await;
        let mut fetcher = Fetcher::new().unwrap();
        fetcher.deadline = Duration::from_secs(5);
        for path in ["/good", "/moved"] {
            assert_eq!(
                fetcher.text(&format!("{server}{path}")).await.unwrap(),
                "kind: A\n"
            );
        }
        for (path, reason) in [
            ("/missing", "404 Not Found"),
            ("/round", "more than 5 times"),
            ("/file", "nothing that could be fetched"),
            ("/lost", "not saying where"),
            ("/large", "larger than 8 MiB"),
            ("/hang", "longer than 5 s"),
        ] {
            let url = format!("{server}{path}");
            let problem = fetcher.text(&url).await.unwrap_err();
            assert!(problem.message.contains(&url), "{problem}");
            assert!(problem.message.contains(reason), "{path}: {problem}");
            assert!(problem.remedy.is_some());
        }
        let sum = Hash::digest(b"kind: A\n");
        let known = format!("{server}/good#sha256={}", sum.as_str());
        assert_eq!(fetcher.text(&known).await.unwrap(), "kind: A\n");
        let other = format!(
            "{server}/good#sha256={}",
            Hash::digest(b"kind: B\n").as_str()
        );
        let problem = fetcher.text(&other).await.unwrap_err();
        assert!(problem.message.contains(sum.as_str()), "{problem}");
        let problem = fetcher.text("http://127.0.0.1:1/").await.unwrap_err();
        assert!(problem.message.contains("refused"), "{problem}");
    }

    #[tokio::test]
    async fn a_server_that_nobody_vouches_for_is_refused() {
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![key.cert.der().clone()],
                key.signing_key.serialize_der().try_into().unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = acceptor.accept(stream).await;
            }
        });
        let url = format!("https://localhost:{port}/good");
        let problem = Fetcher::new().unwrap().text(&url).await.unwrap_err();
        assert!(problem.message.contains("certificate"), "{problem}");
    }

    #[test]
    fn nobody_is_sent_where_others_may_answer() {
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        let secure = uri("https://a.example/x");
        assert!(
            elsewhere(&secure, "http://a.example/x")
                .unwrap_err()
                .contains("https to http")
        );
        assert_eq!(
            elsewhere(&secure, "/y?z").unwrap(),
            uri("https://a.example/y?z")
        );
        let plain = uri("http://a.example/x");
        assert_eq!(
            elsewhere(&plain, "https://b.example/y").unwrap(),
            uri("https://b.example/y")
        );
        for bad in ["y", "", "ftp://a.example/x", "//\u{7f}"] {
            assert!(elsewhere(&plain, bad).is_err(), "{bad}");
        }
    }
}
