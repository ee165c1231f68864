use session::{Session, SessionTitle, Sessions, TurnEnd, TurnReason, TurnStart};

use super::*;
use crate::disk::Leased;
use crate::disk::fake::{Failure, Fake, Left, Plan};

struct One {
    disk: Fake,
    session: Session,
    writer: Writer,
    names: Names,
    buffer: Vec<u8>,
}

impl One {
    fn on(disk: &Fake, files: &Arc<OpenFiles>) -> Self {
        let session = Sessions::new().create("/home/me/project");
        let names = Names::new(std::path::Path::new("/fake").into(), session.id());
        let Ok(Leased::Mine(lease)) = disk.lease(&names.lock()) else { panic!("nobody has it") };
        let (shared, files, sources) = (Arc::new(disk.clone()), files.clone(), Arc::default());
        let home = Home { disk: shared, names: names.clone(), files, sources };
        Self { disk: disk.clone(), session, writer: Writer::fresh(home, lease), names, buffer: Vec::new() }
    }

    fn append(&self, count: usize) -> Snapshot {
        for _ in 0..count {
            self.session.append(SessionTitle { title: "t".into(), source: "user".into() }).expect("it is open");
        }
        self.session.snapshot()
    }

    fn flush(&mut self, count: usize) -> Result<(), Fault> {
        self.writer.flush(&self.append(count), &mut self.buffer)
    }

    fn write_ahead(&mut self, count: usize) {
        self.writer.write_ahead(&self.append(count), &mut self.buffer).expect("it can be written");
    }

    /// How many whole lines `disk` has, header included.
    fn lines(&self, disk: &Fake) -> usize {
        let bytes = disk.read(&self.names.log()).unwrap_or_default();
        assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "half a line");
        bytes.iter().filter(|byte| **byte == b'\n').count()
    }
}

#[test]
fn nothing_is_written_ahead_of_the_first_flush() {
    let mut one = One::on(&Fake::default(), &Arc::default());
    let before = one.disk.steps();
    one.write_ahead(5);
    assert_eq!(one.disk.steps(), before);
    one.flush(1).expect("it can be written");
    assert_eq!(one.lines(&one.disk), 7);
}

#[test]
fn what_is_written_ahead_is_synced_by_the_flush() {
    let mut one = One::on(&Fake::default(), &Arc::default());
    one.flush(1).expect("it can be written");
    one.write_ahead(5);
    assert_eq!((one.lines(&one.disk), one.lines(&one.disk.reboot(Left::Synced))), (7, 2));
    one.flush(0).expect("it can be written");
    assert_eq!(one.lines(&one.disk.reboot(Left::Synced)), 7);
}

#[test]
fn what_is_written_ahead_is_not_copied_by_forks_before_it_is_synced() {
    let mut one = One::on(&Fake::default(), &Arc::default());
    let turn = |one: &One| {
        one.session.append(TurnStart { turn: 1 }).expect("it is open");
        one.session.append(TurnEnd { turn: 1, reason: TurnReason::Completed }).expect("it is open");
    };
    let through = |one: &One| one.writer.home.sources.through(one.session.id());
    one.flush(1).expect("it can be written");
    assert_eq!(through(&one), None, "no turn has closed");
    turn(&one);
    one.flush(1).expect("it can be written");
    assert_eq!(through(&one), Some(3));
    turn(&one);
    one.write_ahead(1);
    assert_eq!(through(&one), Some(3));
    one.flush(0).expect("it can be written");
    assert_eq!(through(&one), Some(6));
}

#[test]
fn few_files_stay_open_however_many_sessions_there_are() {
    let (disk, files) = (Fake::default(), Arc::<OpenFiles>::default());
    let mut all: Vec<One> = (0..20).map(|_| One::on(&disk, &files)).collect();
    for one in &mut all {
        one.flush(1).expect("it can be written");
        one.write_ahead(1);
    }
    assert_eq!(files.count(), (open_files::MOST, open_files::MOST_AHEAD));
    let ahead = |one: &&One| one.lines(&disk) == 3;
    assert_eq!(all.iter().filter(ahead).count(), open_files::MOST_AHEAD);
    all.iter_mut().for_each(|one| one.flush(0).expect("it can be written"));
    assert_eq!(files.count(), (open_files::MOST, 0));
    assert!(all.iter().all(|one| one.lines(&disk) == 3 && one.lines(&disk.reboot(Left::Synced)) == 3));
    all.clear();
    assert_eq!(files.count(), (0, 0), "none outlives its session");
}

#[test]
fn a_file_that_is_replaced_while_it_is_held_open_is_not_written() {
    let mut one = One::on(&Fake::default(), &Arc::default());
    one.flush(1).expect("it can be written");
    one.write_ahead(1);
    let whole = one.disk.read(&one.names.log()).expect("it is there");
    one.disk.put(&one.names.log(), &whole);
    let fault = one.flush(1).expect_err("it is another file");
    assert!(fault.to_string().contains("it was replaced"), "{fault}");
    assert_eq!(one.disk.read(&one.names.log()), Some(whole));
}

#[test]
fn after_a_failed_sync_all_that_it_should_have_kept_is_written_anew() {
    let mut one = One::on(&Fake::default(), &Arc::default());
    one.flush(1).expect("it can be written");
    // Opening, looking, writing by halves: whichever step the sync is, it is met.
    for step in 0..20 {
        one.disk.plan(Plan::Once(one.disk.steps() + step, Failure::Refused));
        let failed = one.flush(1).is_err();
        one.disk.heal();
        one.flush(0).expect("it can be written");
        assert_eq!(one.lines(&one.disk.reboot(Left::Synced)), one.session.len() as usize + 1, "{step}, {failed}");
    }
}

#[test]
fn a_flush_is_one_sync_and_a_new_file_one_more_of_its_directory() {
    let mut one = One::on(&Fake::default(), &Arc::default());
    one.flush(1).expect("it can be written");
    assert_eq!(one.disk.syncs(), (1, 1));
    one.flush(3).expect("it can be written");
    one.flush(0).expect("it can be written");
    assert_eq!(one.disk.syncs(), (2, 1), "and none where nothing is new");
}

/// What a durable child costs at most: its first batch, its request, its turn's end.
#[test]
fn a_child_is_three_syncs_and_one_of_the_directory() {
    let mut one = One::on(&Fake::default(), &Arc::default());
    for _ in 0..3 {
        one.flush(4).expect("it can be written");
    }
    one.writer.let_go();
    assert_eq!(one.disk.syncs(), (3, 1));
    assert_eq!(one.disk.opened(), 1, "it stays open in between");
}

#[test]
fn part_of_a_batch_is_cut_back_even_if_less_is_written_next() {
    let mut one = One::on(&Fake::default(), &Arc::default());
    one.flush(1).expect("it can be written");
    let short = one.append(1);
    // Half of the batch is written, and not even that can be cut back.
    one.disk.plan(Plan::From(one.disk.steps() + 2, Failure::Full));
    one.flush(20).expect_err("the disk is full");
    one.disk.heal();
    assert!(!one.disk.read(&one.names.log()).expect("it is there").ends_with(b"\n"));
    one.writer.flush(&short, &mut one.buffer).expect("there is room again");
    assert_eq!(one.lines(&one.disk), 3);
    one.flush(0).expect("there is room again");
    assert_eq!(one.lines(&one.disk.reboot(Left::Synced)), 23);
}
