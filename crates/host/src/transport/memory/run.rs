//! What a run does that has a machine in memory for itself: a task, or the way back.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::{
    change,
    failure::{Happening, Moment},
    incoming::Content,
    lock::{Holder, Taken},
    look::look,
    record_store::RecordStore,
    request::{Call, Released, Request},
    session::{Session, Stop},
    undo::{self, Restored},
};

/// The script has ended, and its end is not reported.
struct Gone;

impl Session {
    /// What needs the machine for itself.
    pub(super) async fn locked(
        &mut self,
        request: &Request,
        contents: BTreeMap<usize, Content>,
    ) -> Stop {
        let holder = Holder::new(&request.run, Some(self.connection.clone()));
        let killed = holder.killed.clone();
        if !self.take_lock(holder, request.lock_timeout).await {
            return self.end("failed").await;
        }
        let stop = tokio::select! {
            biased;
            _ = killed.comes() => Stop::Gone,
            stop = self.hold(request, contents) => stop,
        };
        self.machine.release(&request.run);
        stop
    }

    /// Waits for another run, and ends one whose control process is gone.
    async fn take_lock(&mut self, holder: Holder, lock_timeout: u64) -> bool {
        let until = Instant::now() + Duration::from_secs(lock_timeout);
        let Taken::ByOther(other) = self.machine.take(&holder) else {
            return true;
        };
        self.say(&format!("waiting {other}")).await;
        loop {
            let Some(other) = self.machine.held_until(until).await else {
                match self.machine.take(&holder) {
                    Taken::Now => return true,
                    Taken::ByOther(_) => continue,
                }
            };
            if !self.machine.fence() {
                self.say(&format!("busy {other}")).await;
                return false;
            }
            self.say(&format!("fenced {other}")).await;
            let soon = Instant::now() + Duration::from_secs(20);
            if self.machine.held_until(soon).await.is_some()
                || !matches!(self.machine.take(&holder), Taken::Now)
            {
                self.say(&format!("busy {other}")).await;
                return false;
            }
            return true;
        }
    }

    async fn hold(&mut self, request: &Request, contents: BTreeMap<usize, Content>) -> Stop {
        self.machine.lock().store.report = Some((request.run.clone(), String::new()));
        self.reporting = true;
        self.say(&format!("hatchery 1 {}", request.run)).await;
        let held = {
            let mut state = self.machine.lock();
            match &state.store.cluster {
                Some((id, name)) if *id != request.cluster => Some(format!("held {id} {name}")),
                Some(_) => None,
                None => {
                    if request.call == Call::Apply {
                        state.store.cluster =
                            Some((request.cluster.clone(), request.cluster_name.clone()));
                    }
                    None
                }
            }
        };
        if let Some(held) = held {
            self.say(&held).await;
            return self.end("failed").await;
        }
        match &request.call {
            Call::Undo(released) => self.undo(released).await,
            _ => self.apply(request, contents).await,
        }
    }

    async fn apply(&mut self, request: &Request, mut contents: BTreeMap<usize, Content>) -> Stop {
        let needs = {
            let state = self.machine.lock();
            look(&state.world, &state.store, &request.steps)
        };
        let needed = |number: &usize| !needs[*number].is_empty();
        let mut wanting = false;
        for number in (0..needs.len()).filter(needed) {
            if change::wants_content(&request.steps[number], &needs[number])
                && !contents.contains_key(&number)
            {
                self.say(&format!("wanting {number}")).await;
                wanting = true;
            }
        }
        if wanting {
            return self.end("wanting").await;
        }
        let recorded = self.machine.lock().record(request, &needs);
        if let Err((number, why)) = recorded {
            self.machine.lock().store.forget_after(None);
            return self.fail(number, &why).await;
        }
        for number in (0..needs.len()).filter(|number| !needed(number)) {
            self.say(&format!("unchanged {number}")).await;
        }
        for number in (0..needs.len()).filter(needed) {
            let step = &request.steps[number];
            let title = step.title();
            if self
                .meets(Some(number), &title, Moment::Before)
                .await
                .is_err()
            {
                return Stop::Gone;
            }
            self.say(&format!("start {number}")).await;
            match self.meets(Some(number), &title, Moment::Begun).await {
                Err(Gone) => return Stop::Gone,
                Ok(Some(output)) => {
                    self.machine.lock().store.forget_after(Some(number));
                    return self.fail(number, &output).await;
                }
                Ok(None) => {}
            }
            let changed = {
                let state = &mut *self.machine.lock();
                change::apply(
                    &mut state.world,
                    &mut state.store,
                    step,
                    &request.owner,
                    contents.remove(&number),
                )
            };
            if let Err(why) = changed {
                self.machine.lock().store.forget_after(Some(number));
                return self.fail(number, &why).await;
            }
            if self
                .meets(Some(number), &title, Moment::Done)
                .await
                .is_err()
            {
                return Stop::Gone;
            }
            self.say(&format!("changed {number}")).await;
        }
        self.machine.lock().settle(request);
        self.end("ok").await
    }

    async fn undo(&mut self, released: &Released) -> Stop {
        // Units stop first and start last; packages go together, when everything else is back.
        let (units, packages, others) = {
            let state = &mut *self.machine.lock();
            let chosen = undo::chosen(&mut state.store, released);
            let kind = |key: &String| {
                state
                    .store
                    .records
                    .get(key)
                    .map_or("", |record| record.kind())
            };
            let (units, rest): (Vec<_>, Vec<_>) =
                chosen.into_iter().partition(|key| kind(key) == "unit");
            let (packages, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|key| kind(key) == "package");
            for key in &units {
                undo::stop_unit(&mut state.world, &state.store, key);
            }
            (units, packages, others)
        };
        let mut stuck = false;
        for key in [others, packages, units].concat() {
            let name = self.machine.lock().resource(&key);
            if self.meets(None, &name, Moment::Before).await.is_err() {
                return Stop::Gone;
            }
            let restored = match self.meets(None, &name, Moment::Begun).await {
                Err(Gone) => return Stop::Gone,
                Ok(Some(output)) => Restored::Left(output),
                Ok(None) => {
                    let state = &mut *self.machine.lock();
                    undo::restore(&mut state.world, &mut state.store, &key)
                }
            };
            if self.meets(None, &name, Moment::Done).await.is_err() {
                return Stop::Gone;
            }
            match restored {
                Restored::Undone => self.say(&format!("undone {name}")).await,
                Restored::Kept => self.say(&format!("kept {name}")).await,
                Restored::Left(why) => {
                    stuck = true;
                    self.say(&format!("left {name}\nwhy {}\n{why}", why.len()))
                        .await;
                }
            }
        }
        {
            let store = &mut self.machine.lock().store;
            if store.records.is_empty() && !stuck {
                *store = RecordStore::default();
            }
        }
        self.end(if stuck { "stuck" } else { "ok" }).await
    }

    /// What goes wrong at a moment of a step: its output when it fails.
    async fn meets(
        &mut self,
        number: Option<usize>,
        title: &str,
        moment: Moment,
    ) -> Result<Option<String>, Gone> {
        match self.machine.happening(number, title, moment) {
            None => Ok(None),
            Some(Happening::Fail(output)) => Ok(Some(output)),
            Some(Happening::Drop) => {
                self.connection.come("the machine in memory dropped it");
                Ok(None)
            }
            Some(Happening::Die) => {
                self.machine.lose_power();
                Err(Gone)
            }
            // Whoever ends it drops this future.
            Some(Happening::Hang) => std::future::pending().await,
        }
    }
}
