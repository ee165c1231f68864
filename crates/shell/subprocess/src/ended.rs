//! What a helper says, and how a tree ended.

use serde::{Deserialize, Serialize};

/// What a helper tells the harness: one JSON object a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum Report {
    /// The command is executed.
    Started,
    /// The set-up failed, so that nothing of the command ran.
    Failed {
        /// The step that failed.
        stage: String,
        /// What it failed with.
        why: String,
    },
    /// Everything was set up, but the program could not be executed.
    NotFound {
        /// The program, as it was named.
        program: String,
        /// What the system said.
        why: String,
    },
    /// Something that whoever ran the command is to know.
    Note {
        /// In one line.
        text: String,
    },
    /// Processes that could not be ended: the only case in which a helper ends before its tree.
    Left {
        /// Their ids.
        processes: Vec<u32>,
    },
    /// The command ended by itself. A helper whose lifeline has ended does not say so.
    Ended(Exit),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// The end of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it came about.
    pub how: How,
    /// What the helper found.
    pub notes: Vec<String>,
}

/// How a tree came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// The command ended with this code.
    Exited(i32),
    /// The command was ended by this signal, which was not ours.
    Signaled(i32),
    /// The harness ended it: [`Process::kill`](crate::Process::kill), a dropped process, a closed scope.
    Killed,
    /// The program could not be executed.
    NotFound {
        /// The program, as it was named.
        program: String,
        /// What the system said.
        why: String,
    },
    /// The helper could not set up what the command was to run in. Nothing of the command ran.
    SetUpFailed {
        /// The step that failed.
        stage: String,
        /// What it failed with.
        why: String,
    },
    /// The helper ended, or had to be ended, without saying how the command did.
    HelperDied {
        /// What is known of it, in words.
        status: String,
    },
}

impl From<Exit> for How {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Exited(code),
            Exit::Signal(signal) => Self::Signaled(signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(report: Report, line: &str) {
        assert_eq!(serde_json::to_string(&report).unwrap(), line);
        assert_eq!(serde_json::from_str::<Report>(line).unwrap(), report);
    }

    #[test]
    fn reports_are_one_line_of_json_each() {
        let (stage, why) = ("mount".to_owned(), "no\nway".to_owned());
        check(Report::Started, r#"{"report":"started"}"#);
        check(Report::Failed { stage, why: why.clone() }, r#"{"report":"failed","stage":"mount","why":"no\nway"}"#);
        check(Report::NotFound { program: "x".into(), why }, r#"{"report":"not-found","program":"x","why":"no\nway"}"#);
        check(Report::Note { text: "t".into() }, r#"{"report":"note","text":"t"}"#);
        check(Report::Left { processes: vec![7] }, r#"{"report":"left","processes":[7]}"#);
        check(Report::Ended(Exit::Code(3)), r#"{"report":"ended","code":3}"#);
        check(Report::Ended(Exit::Signal(9)), r#"{"report":"ended","signal":9}"#);
    }

    #[test]
    fn what_is_no_report_is_refused() {
        for line in ["", "{}", "[]", r#"{"report":"who"}"#, r#"{"report":"ended"}"#, r#"{"report":"ended","code":"0"}"#]
        {
            assert!(serde_json::from_str::<Report>(line).is_err(), "{line}");
        }
    }
}
