use super::*;

const OLD: JobId = JobId([1; 16]);
const NEW: JobId = JobId([2; 16]);
const AGAIN: JobId = JobId([3; 16]);
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client whose time passes by what the machine waits, and with what it asks for last.
struct Bed {
    upgrade: Upgrade,
    now: Duration,
    step: Step,
}

impl Bed {
    fn new() -> Self {
        let upgrade = Upgrade::new(OLD, [NEW, AGAIN], true, TIMEOUT);
        let step = ask(upgrade.begin());
        Self { upgrade, now: Duration::from_secs(100), step }
    }

    /// It asks for this, and gets this answer.
    #[track_caller]
    fn on(&mut self, expected: &Ask, answer: Result<Answer>) -> &mut Self {
        let Step::Ask(pause, asked) = &self.step else { panic!("{:?} is the end", self.step) };
        assert_eq!(asked, expected);
        self.now += *pause;
        self.step = self.upgrade.step(self.now, answer);
        self
    }

    #[track_caller]
    fn ends(&self) -> &Outcome {
        let Step::End(outcome) = &self.step else { panic!("it goes on with {:?}", self.step) };
        outcome
    }

    /// The old job is stopped.
    fn stopped() -> Self {
        let mut bed = Self::new();
        bed.on(&Ask::Savepoint, savepoint("checked"));
        bed.on(&Ask::Check("checked".into()), Ok(Answer::Fits(true)));
        bed.on(&Ask::Stop, Ok(Answer::Done)).on(&Ask::StopResult, savepoint("last"));
        bed
    }

    /// The new version is accepted.
    fn started() -> Self {
        let mut bed = Self::stopped();
        bed.on(&start(), Ok(Answer::Done));
        bed
    }

    /// The new version is not there in time.
    fn late() -> Self {
        let mut bed = Self::started();
        while bed.step == Step::Ask(LOOK_PAUSE, Ask::Look(NEW)) || bed.step == ask(Ask::Look(NEW)) {
            bed.on(&Ask::Look(NEW), job(JobStatus::Created));
        }
        bed
    }
}

fn start() -> Ask {
    Ask::Start(NEW, "last".into())
}

fn restart() -> Ask {
    Ask::Restart(AGAIN, "last".into())
}

fn savepoint(location: &str) -> Result<Answer> {
    Ok(Answer::Savepoint(location.to_owned()))
}

fn seen(status: JobStatus) -> Seen {
    Seen { status, checkpoint: None, savepoint: None, waiting_for: None, failure: None }
}

fn job(status: JobStatus) -> Result<Answer> {
    Ok(Answer::Job(seen(status)))
}

fn checkpointed(status: JobStatus) -> Result<Answer> {
    Ok(Answer::Job(Seen { checkpoint: Some(9), ..seen(status) }))
}

fn lost() -> Result<Answer> {
    Err(Error::system("no answer"))
}

fn no() -> Result<Answer> {
    Err(Error::input("no"))
}

#[test]
fn a_version_that_works_is_all_there_is_to_it() {
    let mut bed = Bed::started();
    bed.on(&Ask::Look(NEW), job(JobStatus::Created)).on(&Ask::Look(NEW), job(JobStatus::Running));
    bed.on(&Ask::Checkpoint(NEW), Ok(Answer::Done)).on(&Ask::Look(NEW), checkpointed(JobStatus::Running));
    assert_eq!(bed.ends(), &Outcome::Upgraded);
    assert_eq!((bed.upgrade.checked(), bed.upgrade.savepoint()), (Some("checked"), Some("last")));
    assert_eq!(bed.upgrade.gap(), Some(LOOK_PAUSE));
}

#[test]
fn nothing_is_stopped_that_cannot_be_started_again() {
    let mut bed = Bed::new();
    bed.on(&Ask::Savepoint, savepoint("checked")).on(&Ask::Check("checked".into()), Ok(Answer::Fits(false)));
    assert_eq!(bed.ends(), &Outcome::Refused);
    let mut bed = Bed::new();
    assert!(matches!(bed.on(&Ask::Savepoint, lost()).ends(), Outcome::NotStopped(_)));
    let mut bed = Bed::new();
    bed.on(&Ask::Savepoint, savepoint("checked")).on(&Ask::Check("checked".into()), Ok(Answer::Fits(true)));
    assert!(matches!(bed.on(&Ask::Stop, no()).ends(), Outcome::NotStopped(_)));
}

#[test]
fn a_stop_whose_answer_was_lost_is_asked_for_again() {
    let mut bed = Bed::new();
    bed.on(&Ask::Savepoint, savepoint("checked")).on(&Ask::Check("checked".into()), Ok(Answer::Fits(true)));
    bed.on(&Ask::Stop, lost()).on(&Ask::Stop, no()).on(&Ask::Look(OLD), job(JobStatus::Running));
    let stopped = LastSavepoint { id: 10, location: "last".into(), ends_job: true };
    let finished = Seen { checkpoint: Some(9), savepoint: Some(stopped), ..seen(JobStatus::Finished) };
    bed.on(&Ask::Look(OLD), Ok(Answer::Job(finished))).on(&start(), no());
    assert_eq!(bed.step, ask(restart()));
}

#[test]
fn a_job_that_went_on_after_its_stop_was_not_stopped() {
    let stopped = Some(LastSavepoint { id: 10, location: "last".into(), ends_job: true });
    let seen = Seen { checkpoint: Some(11), savepoint: stopped, ..seen(JobStatus::Finished) };
    assert_eq!(seen.stopped_with(), None, "it finished by itself");
    assert_eq!(Seen { checkpoint: None, ..seen.clone() }.stopped_with(), Some("last"));
    let other = Some(LastSavepoint { id: 12, location: "other".into(), ends_job: false });
    assert_eq!(Seen { savepoint: other, ..seen.clone() }.stopped_with(), None, "anybody may take a savepoint");
    let mut bed = Bed::new();
    bed.on(&Ask::Savepoint, savepoint("checked")).on(&Ask::Check("checked".into()), Ok(Answer::Fits(true)));
    bed.on(&Ask::Stop, Ok(Answer::Done)).on(&Ask::StopResult, no()).on(&Ask::Look(OLD), Ok(Answer::Job(seen)));
    assert!(matches!(bed.ends(), Outcome::Ended(_)));
}

#[test]
fn a_version_that_does_not_come_up_makes_room_for_the_old_one() {
    let mut bed = Bed::late();
    bed.on(&Ask::Withdraw(NEW), Ok(Answer::Done)).on(&Ask::Look(NEW), job(JobStatus::Cancelling));
    bed.on(&Ask::Look(NEW), lost()).on(&Ask::Look(NEW), job(JobStatus::Created));
    // Another JobManager knows nothing of it.
    bed.on(&Ask::Withdraw(NEW), lost()).on(&Ask::Look(NEW), job(JobStatus::Canceled));
    bed.on(&restart(), lost()).on(&restart(), Ok(Answer::Done)).on(&Ask::Look(AGAIN), job(JobStatus::Created));
    bed.on(&Ask::Look(AGAIN), job(JobStatus::Running));
    let Outcome::RolledBack(reason) = bed.ends() else { panic!("{:?}", bed.step) };
    assert!(reason.ends_with("does not work after 10s: it is CREATED"), "{reason}");
    assert_eq!(bed.upgrade.gap(), None);
}

#[test]
fn a_version_whose_output_counts_is_not_replaced() {
    let mut bed = Bed::late();
    bed.on(&Ask::Withdraw(NEW), no()).on(&Ask::Look(NEW), checkpointed(JobStatus::Running));
    assert_eq!(bed.ends(), &Outcome::Upgraded);
    let mut bed = Bed::late();
    bed.on(&Ask::Withdraw(NEW), no()).on(&Ask::Look(NEW), job(JobStatus::Finished));
    assert_eq!(bed.ends(), &Outcome::Upgraded);
    let mut bed = Bed::started();
    bed.on(&Ask::Look(NEW), checkpointed(JobStatus::Failed));
    assert!(matches!(bed.ends(), Outcome::NewEnded(_)));
    let mut bed = Bed::started();
    bed.on(&Ask::Look(NEW), job(JobStatus::Failed));
    assert_eq!(bed.step, ask(restart()), "nothing of it counts");
}

#[test]
fn a_start_whose_answer_was_lost_is_the_same_start() {
    let mut bed = Bed::stopped();
    bed.on(&start(), lost()).on(&start(), Ok(Answer::Done));
    assert_eq!(bed.step, ask(Ask::Look(NEW)));
    // The first one may have been accepted.
    let mut bed = Bed::stopped();
    bed.on(&start(), lost()).on(&start(), no()).on(&Ask::Withdraw(NEW), no()).on(&Ask::Look(NEW), no());
    assert_eq!(bed.step, ask(restart()));
    bed.on(&restart(), lost()).on(&restart(), no()).on(&Ask::Look(AGAIN), no());
    assert!(matches!(bed.ends(), Outcome::OldEnded(_)));
}

#[test]
fn a_job_manager_that_stays_away_ends_it_with_what_is_known() {
    let away = |mut bed: Bed| {
        let began = bed.now;
        while let Step::Ask(_, asked) = bed.step.clone() {
            bed.on(&asked, lost());
        }
        assert!(bed.now - began >= OUTAGE_MAX, "{:?}", bed.now - began);
        bed.ends().clone()
    };
    assert!(matches!(away(Bed::stopped()), Outcome::StartUnknown(Version::New, _)));
    assert!(matches!(away(Bed::started()), Outcome::NotWithdrawn(_)));
    let mut bed = Bed::late();
    bed.on(&Ask::Withdraw(NEW), Ok(Answer::Done)).on(&Ask::Look(NEW), job(JobStatus::Canceled));
    assert!(matches!(away(bed), Outcome::StartUnknown(Version::Old, _)));
    let mut bed = Bed::new();
    bed.on(&Ask::Savepoint, savepoint("checked")).on(&Ask::Check("checked".into()), Ok(Answer::Fits(true)));
    assert!(matches!(away(bed), Outcome::StopUnknown(_)));
}
