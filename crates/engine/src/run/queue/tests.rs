use proptest::prelude::*;

use super::*;
use crate::{
    owner::Owner,
    plan::{ApiWork, Task, TaskId, Work},
};

fn task(title: &str, machine: usize, needs: &[usize], concurrency: Concurrency) -> Task {
    Task {
        title: title.into(),
        needs: needs.iter().map(|number| TaskId(*number)).collect(),
        after: Vec::new(),
        concurrency,
        work: Work::Machine {
            machine: Name::parse(&format!("m{machine}")).unwrap(),
            owner: Owner::Prepare,
            resources: Vec::new(),
        },
    }
}

fn plan(tasks: Vec<Task>) -> Plan {
    Plan {
        tasks,
        notes: Vec::new(),
    }
}

fn queue(plan: &Plan, parallel: usize) -> Queue<'_> {
    let limits = Limits {
        parallel,
        workers: 2,
    };
    Queue::new(plan, limits)
}

/// Everything that can begin now.
fn begun(queue: &mut Queue<'_>) -> Vec<usize> {
    std::iter::from_fn(|| queue.next())
        .filter_map(|next| match next {
            Next::Begin { task, .. } => Some(task),
            Next::Skip { .. } => None,
        })
        .collect()
}

fn work(task: usize) -> Option<Next> {
    let stage = Stage::Work;
    Some(Next::Begin { task, stage })
}

fn look(task: usize) -> Option<Next> {
    let stage = Stage::Look;
    Some(Next::Begin { task, stage })
}

#[test]
fn what_everybody_waits_for_goes_first() {
    // A thousand workers stand in the list before the master.
    const WORKERS: usize = 1000;
    let free = Concurrency::Free;
    let mut tasks: Vec<_> = (0..WORKERS)
        .map(|place| task("prepare", place, &[], free))
        .collect();
    tasks.push(task("master: prepare", WORKERS, &[], free));
    tasks.push(task("etcd", WORKERS, &[WORKERS], free));
    tasks.push(task("master", WORKERS, &[WORKERS + 1], free));
    let workers = (0..WORKERS).map(|place| task("worker", place, &[place, WORKERS + 2], free));
    tasks.extend(workers);
    let plan = plan(tasks);
    let mut queue = queue(&plan, 4);
    for step in [WORKERS, WORKERS + 1, WORKERS + 2] {
        let now = begun(&mut queue);
        assert!(now.contains(&step), "{step} waits behind {now:?}");
        for task in now {
            queue.end(task, End::Good);
        }
    }
}

#[test]
fn members_that_wait_for_each_other_count_as_one() {
    let together = Concurrency::Together;
    let plan = plan(vec![
        task("m0: etcd", 0, &[], together),
        task("m1: etcd", 1, &[], together),
        task("m2: etcd", 2, &[], together),
        task("w0: prepare", 3, &[], Concurrency::Free),
        task("m0: master", 0, &[0, 1, 2], Concurrency::Free),
    ]);
    let mut queue = queue(&plan, 1);
    assert_eq!(begun(&mut queue), [0, 1, 2]);
    queue.end(0, End::Good);
    queue.end(1, End::Good);
    assert_eq!(
        begun(&mut queue),
        [0_usize; 0],
        "there is room for one only"
    );
    queue.end(2, End::Good);
    assert_eq!(begun(&mut queue), [3]);
    queue.end(3, End::Good);
    assert_eq!(begun(&mut queue), [4]);
}

/// Three members, and somebody who waits until all have ended.
fn members() -> Plan {
    let lane = Concurrency::OneByOne(Lane::Etcd);
    let mut last = task("last", 3, &[], Concurrency::Free);
    last.after = vec![TaskId(0), TaskId(1), TaskId(2)];
    plan(vec![
        task("m0: etcd", 0, &[], lane),
        task("m1: etcd", 1, &[], lane),
        task("m2: etcd", 2, &[], lane),
        last,
    ])
}

#[test]
fn one_by_one_where_something_changes() {
    let plan = members();
    let mut queue = queue(&plan, 8);
    // All are looked at together.
    let looks: Vec<_> = std::iter::from_fn(|| queue.next()).map(Some).collect();
    assert_eq!(looks, [look(0), look(1), look(2)]);
    queue.put_back(1);
    assert_eq!(queue.next(), work(1));
    queue.put_back(2);
    assert_eq!(queue.next(), None, "the first one is not back yet");
    // Who needs nothing is done without a turn.
    queue.end(0, End::Good);
    assert_eq!(queue.next(), None);
    queue.end(1, End::Good);
    assert_eq!(queue.next(), work(2));
    queue.end(2, End::Good);
    assert_eq!(queue.next(), work(3));
}

#[test]
fn one_that_does_not_come_back_stops_those_behind_it() {
    let plan = members();
    let mut queue = queue(&plan, 8);
    assert_eq!(begun(&mut queue), [0, 1, 2]);
    for member in 0..3 {
        queue.put_back(member);
    }
    assert_eq!(queue.next(), work(0));
    queue.end(0, End::BadForLane);
    let (task, because) = (1, 0);
    assert_eq!(queue.next(), Some(Next::Skip { task, because }));
    let (task, because) = (2, 0);
    assert_eq!(queue.next(), Some(Next::Skip { task, because }));
    assert_eq!(queue.next(), work(3), "others go on");
}

#[test]
fn one_that_is_refused_stops_nobody() {
    let plan = members();
    let mut queue = queue(&plan, 8);
    assert_eq!(begun(&mut queue), [0, 1, 2]);
    queue.put_back(0);
    queue.put_back(1);
    assert_eq!(queue.next(), work(0));
    queue.end(0, End::Bad);
    assert_eq!(queue.next(), work(1));
}

#[test]
fn who_needs_what_failed_is_skipped_and_who_comes_after_it_is_not() {
    let mut after = task("after", 2, &[], Concurrency::Free);
    after.after = vec![TaskId(0)];
    let plan = plan(vec![
        task("bad", 0, &[], Concurrency::Free),
        task("needs", 1, &[0], Concurrency::Free),
        after,
        task("needs the one that needs", 1, &[1], Concurrency::Free),
    ]);
    let mut queue = queue(&plan, 8);
    assert_eq!(queue.next(), work(0));
    queue.end(0, End::Bad);
    let mut next: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
    next.sort_by_key(|next| match next {
        Next::Begin { task, .. } | Next::Skip { task, .. } => *task,
    });
    assert_eq!(
        next,
        [
            Next::Skip {
                task: 1,
                because: 0
            },
            Next::Begin {
                task: 2,
                stage: Stage::Work
            },
            Next::Skip {
                task: 3,
                because: 1
            },
        ]
    );
}

#[test]
fn what_has_not_begun_is_left_when_the_queue_is_closed() {
    let plan = members();
    let mut queue = queue(&plan, 2);
    assert_eq!(begun(&mut queue), [0, 1]);
    queue.put_back(1);
    let left = Left {
        untouched: 2,
        begun: vec![1],
    };
    assert_eq!(queue.close(), left);
    queue.end(0, End::Good);
    assert_eq!(queue.next(), None);
}

/// Any tasks at all: what each needs, its machine, whether it fails, and how it goes together with others.
fn any_plan() -> impl Strategy<Value = (Plan, Vec<bool>)> {
    let task = (
        0_usize..5,
        0_usize..6,
        proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..4),
        any::<bool>(),
    );
    proptest::collection::vec(task, 1..40).prop_map(|tasks| {
        let mut made = Vec::new();
        let mut bad = Vec::new();
        for (number, (machine, kind, edges, fails)) in tasks.into_iter().enumerate() {
            let concurrency = match kind {
                0 => Concurrency::Together,
                1 => Concurrency::OneByOne(Lane::Etcd),
                2 => Concurrency::OneByOne(Lane::ControlPlane),
                5 => Concurrency::OneByOne(Lane::Workers),
                _ => Concurrency::Free,
            };
            let mut one = task_of(machine, kind, concurrency);
            for (edge, must) in edges.iter().filter(|_| number > 0) {
                let id = TaskId(edge.index(number));
                match must {
                    true => one.needs.push(id),
                    false => one.after.push(id),
                }
            }
            made.push(one);
            bad.push(fails);
        }
        (plan(made), bad)
    })
}

fn task_of(machine: usize, kind: usize, concurrency: Concurrency) -> Task {
    let mut one = task("any", machine, &[], concurrency);
    if kind == 4 {
        one.work = Work::Api(ApiWork::Ready);
        one.concurrency = Concurrency::Free;
    }
    one
}

proptest! {
    /// Every task ends, none twice; limits hold at every moment.
    #[test]
    fn everything_comes_to_an_end((plan, bad) in any_plan(), parallel in 1_usize..4) {
        let mut queue = queue(&plan, parallel);
        let mut running: Vec<(usize, Stage)> = Vec::new();
        let mut ended = BTreeSet::new();
        loop {
            while let Some(next) = queue.next() {
                match next {
                    Next::Skip { task, .. } => prop_assert!(ended.insert(task)),
                    Next::Begin { task, stage } => running.push((task, stage)),
                }
                let tasks = running.iter().map(|(number, _)| &plan.tasks[*number]);
                let places: Vec<_> = tasks.clone().filter_map(|task| task.work.machine()).collect();
                let distinct: BTreeSet<_> = places.iter().collect();
                prop_assert_eq!(places.len(), distinct.len(), "two tasks on one machine");
                let on_machines = tasks.filter(|task| matches!(task.work, Work::Machine { .. }));
                let (together, others): (Vec<_>, Vec<_>) =
                    on_machines.partition(|task| task.concurrency == Concurrency::Together);
                prop_assert!(others.len() + usize::from(!together.is_empty()) <= parallel);
                for (lane, room) in [(Lane::Etcd, 1), (Lane::ControlPlane, 1), (Lane::Workers, 2)] {
                    let at_work = running.iter().filter(|(number, stage)| {
                        plan.tasks[*number].concurrency == Concurrency::OneByOne(lane) && *stage == Stage::Work
                    });
                    prop_assert!(at_work.count() <= room);
                }
            }
            let Some((number, stage)) = running.pop() else { break };
            match (stage, bad[number]) {
                (Stage::Look, true) => queue.put_back(number),
                (Stage::Work, true) => {
                    prop_assert!(ended.insert(number));
                    queue.end(number, End::BadForLane);
                }
                (_, false) => {
                    prop_assert!(ended.insert(number));
                    queue.end(number, End::Good);
                }
            }
        }
        prop_assert_eq!(ended.len(), plan.tasks.len());
    }
}
