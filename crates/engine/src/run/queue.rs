//! Which task begins next. Nothing is done here, so that the order can be tested without machines.
//!
//! What most others wait for goes first: when there is no room for all, etcd and the first master come before the
//! packages of a thousand workers.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use hatchery_spec::value::Name;

use crate::plan::{Concurrency, Lane, Plan};

/// What is to happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A task begins, or goes on.
    Begin { task: usize, stage: Stage },
    /// A task is given up because of another one that was not done.
    Skip { task: usize, because: usize },
}

/// How much of a task is done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Whether anything would be changed, so that no turn is taken in vain.
    Look,
    /// All of it.
    Work,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Good,
    /// Those that need it are not begun.
    Bad,
    /// The same, and no other task of its lane is begun any more.
    BadForLane,
}

/// What is not done when a queue is closed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) untouched: usize,
    pub(super) begun: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Good,
    Bad,
}

/// How much may go on at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Machines that are worked on.
    pub(super) parallel: usize,
    /// Nodes that live and are changed.
    pub(super) workers: usize,
}

pub(super) struct Queue<'a> {
    plan: &'a Plan,
    limits: Limits,
    /// How many others wait for each task.
    weights: Vec<usize>,
    /// How many tasks each still waits for.
    blocked: Vec<usize>,
    followers: Vec<Vec<usize>>,
    state: Vec<State>,
    /// Tasks that wait for nothing but room; those with most followers first.
    ready: BTreeSet<(Reverse<usize>, usize)>,
    /// Tasks that were looked at and have something to change.
    looked: BTreeSet<usize>,
    /// Machines with a task; a second one would only wait there.
    busy: BTreeSet<&'a Name>,
    /// How many machines' tasks run, apart from those that run together.
    running: usize,
    together: usize,
    lanes: BTreeMap<Lane, LaneState>,
}

/// What goes on in a lane.
#[derive(Clone, Debug, Default)]
struct LaneState {
    /// How many of its tasks are at work.
    working: usize,
    /// Those that failed, each of which leaves a machine that is not well.
    failed: Vec<usize>,
}

impl<'a> Queue<'a> {
    pub(super) fn new(plan: &'a Plan, limits: Limits) -> Self {
        let count = plan.tasks.len();
        let mut followers = vec![Vec::new(); count];
        let mut blocked = vec![0; count];
        for (number, task) in plan.tasks.iter().enumerate() {
            let before: BTreeSet<_> = task
                .needs
                .iter()
                .chain(&task.after)
                .map(|id| id.0)
                .collect();
            blocked[number] = before.len();
            for one in before {
                followers[one].push(number);
            }
        }
        let weights = weights(&followers);
        let ready = (0..count)
            .filter(|number| blocked[*number] == 0)
            .map(|number| (Reverse(weights[number]), number))
            .collect();
        Self {
            plan,
            limits: Limits {
                parallel: limits.parallel.max(1),
                workers: limits.workers.max(1),
            },
            weights,
            blocked,
            followers,
            state: vec![State::Waiting; count],
            ready,
            looked: BTreeSet::new(),
            busy: BTreeSet::new(),
            running: 0,
            together: 0,
            lanes: BTreeMap::new(),
        }
    }

    /// The next thing that can happen now, if there is one.
    pub(super) fn next(&mut self) -> Option<Next> {
        let ready = self.ready.iter().map(|(_, number)| *number);
        let next = ready.into_iter().find_map(|number| self.decide(number))?;
        match next {
            Next::Begin { task, stage } => {
                self.ready.remove(&(Reverse(self.weights[task]), task));
                self.occupy(task, stage);
            }
            Next::Skip { task, .. } => {
                self.ready.remove(&(Reverse(self.weights[task]), task));
                self.settle(task, State::Bad);
            }
        }
        Some(next)
    }

    /// A look found something to change: the task waits for its turn.
    pub(super) fn put_back(&mut self, number: usize) {
        self.vacate(number);
        self.looked.insert(number);
        self.state[number] = State::Waiting;
        self.ready.insert((Reverse(self.weights[number]), number));
    }

    pub(super) fn end(&mut self, number: usize, end: End) {
        self.vacate(number);
        if let (End::BadForLane, Concurrency::OneByOne(lane)) =
            (end, self.plan.tasks[number].concurrency)
        {
            self.lanes.entry(lane).or_default().failed.push(number);
        }
        let state = match end {
            End::Good => State::Good,
            End::Bad | End::BadForLane => State::Bad,
        };
        self.settle(number, state);
    }

    /// Nothing begins any more. Gives the tasks that are left, those apart that had begun and wait for their turn.
    pub(super) fn close(&mut self) -> Left {
        self.ready.clear();
        let mut left = Left::default();
        for (number, state) in self.state.iter_mut().enumerate() {
            if *state == State::Waiting {
                *state = State::Bad;
                match self.looked.contains(&number) {
                    true => left.begun.push(number),
                    false => left.untouched += 1,
                }
            }
        }
        left
    }

    fn decide(&self, number: usize) -> Option<Next> {
        let task = &self.plan.tasks[number];
        let mut needs = task.needs.iter();
        if let Some(cause) = needs.find(|need| self.state[need.0] == State::Bad) {
            return Some(Next::Skip {
                task: number,
                because: cause.0,
            });
        }
        let begin = |stage| {
            Some(Next::Begin {
                task: number,
                stage,
            })
        };
        let Some(machine) = task.work.machine() else {
            return begin(Stage::Work);
        };
        let looked = self.looked.contains(&number);
        if let (Concurrency::OneByOne(lane), true) = (task.concurrency, looked)
            && let Some(state) = self.lanes.get(&lane)
        {
            let room = self.room_in(lane);
            if let (Some(cause), true) = (state.failed.first(), state.failed.len() >= room) {
                return Some(Next::Skip {
                    task: number,
                    because: *cause,
                });
            }
            if state.working + state.failed.len() >= room {
                return None;
            }
        }
        if self.busy.contains(machine) {
            return None;
        }
        let room = self.running + usize::from(self.together > 0) < self.limits.parallel;
        match task.concurrency {
            Concurrency::Free if room => begin(Stage::Work),
            Concurrency::Together if room || self.together > 0 => begin(Stage::Work),
            Concurrency::OneByOne(_) if room && looked => begin(Stage::Work),
            Concurrency::OneByOne(_) if room => begin(Stage::Look),
            _ => None,
        }
    }

    /// The maximum number of machines of a lane that may be unavailable at the same time.
    fn room_in(&self, lane: Lane) -> usize {
        match lane {
            Lane::Etcd | Lane::ControlPlane => 1,
            Lane::Workers => self.limits.workers,
        }
    }

    fn occupy(&mut self, number: usize, stage: Stage) {
        self.state[number] = State::Running;
        let task = &self.plan.tasks[number];
        let Some(machine) = task.work.machine() else {
            return;
        };
        self.busy.insert(machine);
        match task.concurrency {
            Concurrency::Together => self.together += 1,
            Concurrency::Free | Concurrency::OneByOne(_) => self.running += 1,
        }
        if let (Concurrency::OneByOne(lane), Stage::Work) = (task.concurrency, stage) {
            self.lanes.entry(lane).or_default().working += 1;
        }
    }

    fn vacate(&mut self, number: usize) {
        let task = &self.plan.tasks[number];
        let Some(machine) = task.work.machine() else {
            return;
        };
        self.busy.remove(machine);
        match task.concurrency {
            Concurrency::Together => self.together -= 1,
            Concurrency::Free => self.running -= 1,
            Concurrency::OneByOne(lane) => {
                self.running -= 1;
                if self.looked.contains(&number) {
                    self.lanes.entry(lane).or_default().working -= 1;
                }
            }
        }
    }

    fn settle(&mut self, number: usize, state: State) {
        self.state[number] = state;
        for follower in self.followers[number].clone() {
            self.blocked[follower] -= 1;
            if self.blocked[follower] == 0 && self.state[follower] == State::Waiting {
                self.ready
                    .insert((Reverse(self.weights[follower]), follower));
            }
        }
    }
}

/// How many tasks wait for each, directly or through others. A task stands behind what it waits for.
fn weights(followers: &[Vec<usize>]) -> Vec<usize> {
    let words = followers.len().div_ceil(64);
    let mut reached = vec![vec![0_u64; words]; followers.len()];
    for number in (0..followers.len()).rev() {
        let mut own = vec![0_u64; words];
        for follower in &followers[number] {
            own[follower / 64] |= 1 << (follower % 64);
            for (own, theirs) in own.iter_mut().zip(&reached[*follower]) {
                *own |= theirs;
            }
        }
        reached[number] = own;
    }
    let count = |set: &Vec<u64>| set.iter().map(|word| word.count_ones() as usize).sum();
    reached.iter().map(count).collect()
}

#[cfg(test)]
mod tests;
