//! Who is asked, and what becomes of it.

use std::sync::{Arc, Mutex};

use session::SessionId;
use user_approval::*;

use crate::support::*;

#[tokio::test]
async fn an_answer_is_the_outcome_and_the_question_is_whole() {
    for (answer, outcome) in [(Answer::AllowOnce, Outcome::AllowedOnce), (Answer::Reject, Outcome::Rejected)] {
        let stage = Stage::new().await;
        let session = stage.session();
        let heard: Arc<Mutex<Vec<Question>>> = Arc::default();
        let hears = heard.clone();
        stage.answerer("a", move |question| {
            hears.lock().unwrap().push(question);
            async move { Some(answer) }
        });
        let ask = ask().for_call(&"call_7".into());
        let got = in_time(stage.approval.request(&session, ask, stage.app.cancelled())).await.unwrap();
        assert_eq!(got, outcome);
        let asked = ApprovalAsked {
            request_id: RequestId(1),
            tool: "write".into(),
            call_id: Some("call_7".into()),
            reason: Some("write /etc/hosts under danger-full-access: to block ads".into()),
            justification: None,
        };
        assert_eq!(*session.latest::<ApprovalAsked>().unwrap(), asked);
        assert_eq!(*heard.lock().unwrap(), [Question { session: session.id(), asked }]);
        assert_eq!(audit(&session), ["1: asked 1".to_owned(), format!("2: decided 1 {outcome:?}")]);
        stage.close().await;
    }
}

#[tokio::test]
async fn the_first_owner_that_answers_decides() {
    let stage = Stage::new().await;
    let session = stage.session();
    let mine: SessionId = session.id();
    stage.answerer_for("stranger", |_| false, async |_| Some(Answer::AllowOnce));
    stage.answerer("absent", async |_| None);
    stage.answerer_for("owner", move |session| session == mine, async |_| Some(Answer::Reject));
    stage.generous();
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::Rejected);
    let want = ["stranger owns?", "absent owns?", "absent asked", "owner owns?", "owner asked", "owner owns?"];
    assert_eq!(stage.consulted.take(), want, "nobody behind it is consulted");
    let other = stage.session();
    assert_eq!(stage.request(&other).await.unwrap(), Outcome::AllowedOnce, "the owner of one is not the other's");
    stage.close().await;
}

#[tokio::test]
async fn nobody_who_can_be_asked_is_unavailable() {
    type Add = fn(&Stage);
    let cases: [(&str, Add); 6] = [
        ("nobody", |_| ()),
        ("a stranger", |stage| stage.answerer_for("stranger", |_| false, async |_| Some(Answer::AllowOnce))),
        ("who does not answer", |stage| stage.answerer("absent", async |_| None)),
        ("who fails", |stage| stage.answerer("fails", async |_| panic!("a bug"))),
        ("who fails at the call", |stage| {
            stage.answerer("fails", |_| -> std::future::Ready<Option<Answer>> { panic!("a bug") });
        }),
        ("who fails when asked whose it is", |stage| {
            stage.answerer_for("fails", |_| panic!("a bug"), async |_| Some(Answer::AllowOnce));
        }),
    ];
    for (who, add) in cases {
        let stage = Stage::new().await;
        add(&stage);
        let session = stage.session();
        assert_eq!(stage.request(&session).await.unwrap(), Outcome::Unavailable, "{who}");
        assert_eq!(audit(&session), ["1: asked 1", "2: decided 1 Unavailable"], "{who}");
        stage.generous();
        assert_eq!(stage.request(&session).await.unwrap(), Outcome::AllowedOnce, "the next is asked after {who}");
        stage.close().await;
    }
}

#[tokio::test]
async fn never_is_decided_before_anyone_is_consulted() {
    let stage = Stage::new().await;
    stage.generous();
    let session = stage.session();
    session.append(PolicySet::by_user(Policy::Never)).unwrap();
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::Rejected);
    assert_eq!(stage.consulted.take(), [""; 0]);
    assert_eq!(audit(&session), ["2: asked 2", "3: decided 2 Rejected"]);
    session.append(PolicySet::by_user(Policy::Ask)).unwrap();
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::AllowedOnce, "the last one wins");
    stage.close().await;
}

#[tokio::test]
async fn without_an_override_the_deployment_default_decides() {
    for (default, outcome, consulted) in [(Policy::Ask, Outcome::AllowedOnce, 3), (Policy::Never, Outcome::Rejected, 0)]
    {
        let stage = Stage::with_default(default).await;
        stage.generous();
        let session = stage.session();
        assert_eq!((stage.approval.default_policy(), stage.approval.effective(&session)), (default, default));
        assert_eq!(stage.request(&session).await.unwrap(), outcome);
        assert_eq!(stage.consulted.take().len(), consulted);
        let other = match default {
            Policy::Ask => Policy::Never,
            Policy::Never => Policy::Ask,
        };
        session.append(PolicySet { policy: other, source: Some(PolicyCause::Preset) }).unwrap();
        assert_eq!(stage.approval.effective(&session), other, "whatever its source");
        stage.close().await;
    }
}
