//! Requests to the API server: few at once, each with a deadline, their failures in our words.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use http::{Method, Request, Response, Uri, header, uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use serde::de::DeserializeOwned;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep_until, timeout_at},
};

use super::{
    Api,
    error::{Asked, Error},
    way::{Access, CONNECTIONS, Unreached, Way},
};

/// A request and its answer are over after so long.
const DEADLINE: Duration = Duration::from_secs(30);

/// A connection without work is closed after so long.
const IDLE: Duration = Duration::from_secs(60);

/// The client, over connections of our own.
pub(super) fn new(access: Access) -> Result<kube::Client, Error> {
    let authority = access.server.to_string().parse();
    let authority = authority.map_err(|error: uri::InvalidUri| Error::Credentials {
        what: "the address of the API server",
        reason: error.to_string(),
    })?;
    let requests = Requests {
        client: legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(CONNECTIONS)
            .build(Way::new(access)?),
        authority,
        places: Arc::new(Semaphore::new(CONNECTIONS)),
    };
    Ok(kube::Client::new(requests, "default"))
}

#[derive(Clone)]
struct Requests {
    client: legacy::Client<Way, Body>,
    authority: uri::Authority,
    places: Arc<Semaphore>,
}

impl Requests {
    async fn send(self, mut request: Request<Body>) -> Result<Response<Answer>, Unreached> {
        let end = Instant::now() + DEADLINE;
        let late = |_| Unreached::Late { after: DEADLINE };
        let is_watch = request.uri().query().is_some_and(|query| {
            query
                .split('&')
                .any(|word| matches!(word, "watch=true" | "watch=1" | "follow=true"))
        });
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(uri::Scheme::HTTPS);
        parts.authority = Some(self.authority);
        *request.uri_mut() = Uri::from_parts(parts).map_err(|error| Unreached::Broken {
            reason: error.to_string(),
        })?;
        let place = timeout_at(end, self.places.acquire_owned()).await;
        // Nobody closes the semaphore.
        let place = place.map_err(late)?.ok();
        let response = timeout_at(end, self.client.request(request)).await;
        let response = response.map_err(late)?.map_err(|error| unreached(&error))?;
        Ok(response.map(|body| Answer {
            body,
            end: (!is_watch).then(|| Box::pin(sleep_until(end))),
            _place: place,
        }))
    }
}

impl tower::Service<Request<Body>> for Requests {
    type Response = Response<Answer>;
    type Error = Unreached;
    type Future = BoxFuture<'static, Result<Self::Response, Unreached>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unreached>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.clone().send(request).boxed()
    }
}

/// An answer that has to be here in time, and its place among those under way.
struct Answer {
    body: Incoming,
    end: Option<Pin<Box<Sleep>>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Unreached;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unreached>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            let broken = |error: hyper::Error| Unreached::Broken {
                reason: error.to_string(),
            };
            return Poll::Ready(frame.map(|frame| frame.map_err(broken)));
        }
        match &mut self.end {
            Some(end) => end
                .as_mut()
                .poll(cx)
                .map(|()| Some(Err(Unreached::Late { after: DEADLINE }))),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request's content, with its type.
pub(super) type Content = (&'static str, Vec<u8>);

impl Api {
    /// Asks once. An answer that is no success is an error.
    pub(super) async fn ask(
        &self,
        asked: &Asked,
        method: Method,
        path: &str,
        content: Option<Content>,
    ) -> Result<Bytes, Error> {
        let mut request = Request::builder().method(method).uri(path);
        let content = content.map(|(kind, bytes)| {
            request = std::mem::take(&mut request).header(header::CONTENT_TYPE, kind);
            bytes
        });
        let request = request
            .header(header::ACCEPT, "application/json")
            .body(Body::from(content.unwrap_or_default()))
            .map_err(|error| Error::Object {
                asked: asked.boxed(),
                reason: error.to_string(),
            })?;
        let unreached = |error: kube::Error| Error::Unreached {
            asked: asked.boxed(),
            source: Box::new(unreached(&error)),
        };
        let response = self.client.send(request).await.map_err(unreached)?;
        let status = response.status();
        let body = response.into_body().collect_bytes().await;
        let body = body.map_err(unreached)?;
        match status.is_success() {
            true => Ok(body),
            false => Err(Error::refused(asked, status.as_u16(), &body)),
        }
    }

    /// Asks for something, again while the answer may be another one in a moment.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        asked: &Asked,
        path: &str,
    ) -> Result<T, Error> {
        let body = self
            .insist(async || self.ask(asked, Method::GET, path, None).await)
            .await?;
        read(asked, &body)
    }

    /// Asks for something that need not be there.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        asked: &Asked,
        path: &str,
    ) -> Result<Option<T>, Error> {
        match self.get(asked, path).await {
            Err(error) if error.is_not_found() => Ok(None),
            answer => answer.map(Some),
        }
    }
}

/// An answer as what it should be.
pub(super) fn read<T: DeserializeOwned>(asked: &Asked, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Garbled {
        asked: asked.boxed(),
        // Position and class only: the words could repeat what is in a Secret.
        reason: format!(
            "{:?} error at line {} column {}",
            error.classify(),
            error.line(),
            error.column()
        ),
    })
}

/// What the way said, or the innermost words of the library, which say most.
fn unreached(error: &(dyn std::error::Error + 'static)) -> Unreached {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let own = chain
        .clone()
        .find_map(|error| error.downcast_ref::<Unreached>());
    own.cloned().unwrap_or_else(|| Unreached::Broken {
        reason: chain.last().unwrap_or(error).to_string(),
    })
}
