//! Requests to the API server: few at once, each with a deadline.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, uri::InvalidUri};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::{Body, ClientBuilder, middleware::BaseUriLayer};
use tokio::{sync::Semaphore, time::timeout};

use super::{
    error::{Error, unreached},
    way::{Access, CONNECTIONS, Unreached, Way},
};

/// The timeout of a request with its answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// The time after which an idle connection is closed.
const IDLE: Duration = Duration::from_secs(60);

type Answer = Response<UnsyncBoxBody<Bytes, Unreached>>;

/// kube's client, over connections of our own.
pub(super) fn client(access: Access) -> Result<kube::Client, Error> {
    let server = format!("https://{}", access.server).parse();
    let server = server.map_err(|error: InvalidUri| Error::Credentials {
        what: "the address of the API server",
        reason: error.to_string(),
    })?;
    let client = legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(CONNECTIONS)
        .build(Way::new(access)?);
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let requests = tower::service_fn(move |request| {
        let answer = send(client.clone(), Arc::clone(&permits), request);
        async { timeout(DEADLINE, answer).await.unwrap_or(LATE) }
    });
    let client = ClientBuilder::new(requests, "default").with_layer(&BaseUriLayer::new(server));
    Ok(client.build())
}

const LATE: Result<Answer, Unreached> = Err(Unreached::Late { after: DEADLINE });

/// The answer is complete, unless it is one that lasts: its request counts as under way until the answer ends.
async fn send(
    client: legacy::Client<Way, Body>,
    permits: Arc<Semaphore>,
    request: Request<Body>,
) -> Result<Answer, Unreached> {
    let mut query = request
        .uri()
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'));
    let lasts = query.any(|word| matches!(word, "watch=true" | "watch=1" | "follow=true"));
    // Nobody closes the semaphore.
    let permit = permits.acquire_owned().await.ok();
    let answer = client
        .request(request)
        .await
        .map_err(|error| unreached(&error))?;
    let (head, body) = answer.into_parts();
    let body = body.map_err(|error| unreached(&error));
    let body = match lasts {
        true => body
            .map_frame(move |frame| {
                let _until_the_end = &permit;
                frame
            })
            .boxed_unsync(),
        false => Full::new(body.collect().await?.to_bytes())
            .map_err(|never| match never {})
            .boxed_unsync(),
    };
    Ok(Response::from_parts(head, body))
}
