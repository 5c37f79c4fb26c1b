use hatchery_engine::event::Share;

use super::*;

fn begun(machines: usize) -> Board {
    let mut board = Board::default();
    let machines = (1..=machines).map(|n| Share {
        name: format!("m-{n}"),
        tasks: 2,
    });
    let machines: Vec<_> = machines.collect();
    let tasks = machines.len() * 2 + 1;
    board.take(&Event::Begun { tasks, machines }, 0.0);
    board
}

fn started(task: usize, machine: Option<&str>, part: &str) -> Event {
    Event::Started {
        task,
        title: part.to_owned(),
        machine: machine.map(Into::into),
    }
}

fn finished(task: usize, machine: Option<&str>, part: &str) -> Event {
    Event::Finished {
        task,
        title: part.to_owned(),
        machine: machine.map(Into::into),
        changes: 3,
        bytes: 5 << 20,
        seconds: 2.25,
    }
}

#[test]
fn one_line_for_each_machine_and_one_for_the_whole() {
    let mut board = begun(3);
    assert_eq!(
        board.lines(0.4, 24, 80),
        [
            "  m-1  waits",
            "  m-2  waits",
            "  m-3  waits",
            "0 of 7 tasks, 0 of 3 machines at work, 0 s"
        ]
    );
    board.take(&started(0, Some("m-1"), "prepare"), 1.0);
    board.take(&started(1, Some("m-2"), "prepare"), 1.0);
    board.take(
        &Event::Step {
            task: 0,
            machine: Some("m-1".into()),
            step: "file /usr/bin/kubelet".into(),
        },
        2.0,
    );
    board.take(&finished(1, Some("m-2"), "prepare"), 3.0);
    board.take(&started(2, Some("m-2"), "etcd"), 3.0);
    board.take(&finished(2, Some("m-2"), "etcd"), 4.0);
    board.take(&started(6, None, "nodes"), 8.0);
    assert_eq!(
        board.lines(13.0, 24, 80),
        [
            "  m-1   12 s  prepare: file /usr/bin/kubelet",
            "  m-2  done",
            "  m-3  waits",
            "  API    5 s  nodes",
            "2 of 7 tasks, 1 of 3 machines at work, 13 s"
        ]
    );
    let narrow = board.lines(13.0, 24, 20);
    assert_eq!(narrow[0], "  m-1   12 s  prep…");
}

#[test]
fn where_there_is_no_room_only_what_is_under_way_is_shown() {
    let mut board = begun(50);
    for task in 0..30 {
        let name = format!("m-{}", task + 1);
        board.take(&started(task, Some(&name), "prepare"), 0.0);
    }
    let lines = board.lines(1.0, 24, 80);
    assert_eq!(lines.len(), 21);
    assert!(lines.iter().all(|line| !line.contains("waits")));
    assert_eq!(lines[20], "0 of 101 tasks, 30 of 50 machines at work, 1 s");
}

#[test]
fn phases_are_from_the_first_beginning_to_the_last_end() {
    let mut board = begun(2);
    board.take(&started(0, Some("m-1"), "prepare"), 1.0);
    board.take(&started(1, Some("m-2"), "prepare"), 2.0);
    board.take(&finished(0, Some("m-1"), "prepare"), 3.0);
    board.take(&started(2, Some("m-1"), "etcd"), 3.0);
    board.take(&finished(2, Some("m-1"), "etcd"), 4.0);
    board.take(&finished(1, Some("m-2"), "prepare"), 9.5);
    let phases: Vec<_> = board
        .phases()
        .into_iter()
        .map(|phase| (phase.title, phase.from, phase.to))
        .collect();
    assert_eq!(
        phases,
        [("prepare".into(), 1.0, 9.5), ("etcd".into(), 3.0, 4.0)]
    );
}

#[test]
fn what_stays_on_the_screen() {
    let seen = |event: &Event| line(event, 61.25);
    assert_eq!(seen(&started(0, Some("m-1"), "etcd")), None);
    assert_eq!(
        seen(&finished(0, Some("m-1"), "etcd")).unwrap(),
        "  61.2 s  m-1: etcd: 3 changes, 5 MiB, 2.2 s\n"
    );
    let failed = Event::Failed {
        task: 0,
        title: "etcd".into(),
        machine: Some("m-1".into()),
        reason: "the disk is full".into(),
        remedy: Some("free some space".into()),
    };
    assert_eq!(
        seen(&failed).unwrap(),
        "  61.2 s  m-1: etcd failed: the disk is full\n          free some space\n"
    );
}

#[test]
fn a_step_cannot_move_the_cursor() {
    let mut board = begun(1);
    board.take(&started(0, Some("m-1"), "prepare"), 0.0);
    board.take(
        &Event::Step {
            task: 0,
            machine: Some("m-1".into()),
            step: "a\n\u{1b}[2Jb".into(),
        },
        0.0,
    );
    assert_eq!(board.lines(0.0, 24, 80)[0], "  m-1    0 s  prepare: a[2Jb");
}
