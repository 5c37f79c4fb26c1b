//! Machines that are lost and not found again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};

use super::{Error, Machine};
use crate::{
    path::Word,
    privilege::Privilege,
    script::Identity,
    transport::{self, Connection, Connector, Running, Stream},
};

/// Reached once, lost with the first command; the second attempt gets no answer.
#[derive(Clone, Default)]
struct Vanishing {
    was_reached: Arc<AtomicBool>,
}

impl Connector for Vanishing {
    fn name(&self) -> &str {
        "m7"
    }

    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Connection>, transport::Error>> {
        if self.was_reached.swap(true, Ordering::SeqCst) {
            return std::future::pending().boxed();
        }
        let connection: Arc<dyn Connection> = Arc::new(self.clone());
        async move { Ok(connection) }.boxed()
    }
}

impl Connection for Vanishing {
    fn exec<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Running, transport::Error>> {
        let lost = transport::Error::Lost {
            host: "m7".into(),
            reason: "it vanished".into(),
        };
        async { Err(lost) }.boxed()
    }

    fn forward<'a>(
        &'a self,
        _: &'a str,
        _: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, transport::Error>> {
        unreachable!("nobody asks for a stream here")
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

#[tokio::test]
async fn connecting_again_ends_at_the_deadline() {
    let word = |text| Word::new(text).unwrap();
    let identity = Identity {
        cluster: word("c1"),
        cluster_name: word("one"),
    };
    let machine = Machine::new(Arc::new(Vanishing::default()), Privilege::Root, identity);
    let undoing = machine.undo(&[], Duration::from_millis(300));
    let undone = tokio::time::timeout(Duration::from_secs(10), undoing).await;
    let error = undone.expect("the deadline passed").unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error:?}");
    assert!(error.to_string().contains("connecting again"), "{error}");
}
