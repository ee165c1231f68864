use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::log::{Gap, Shown};
use super::normal::Names;
use crate::run::logs::{Event, Log};
use crate::run::world::World;

/// What came of a scenario, as text.
#[derive(Default)]
pub(super) struct Outcome {
    text: String,
    /// Different system prompts and tool lists, in order of appearance.
    prompts: Vec<String>,
    tools: Vec<String>,
}

impl Outcome {
    pub(super) fn ran(&mut self, args: &[String]) {
        let quoted = args.iter().map(|arg| match arg.contains([' ', ';', '{', '"']) {
            true => format!("'{arg}'"),
            false => arg.clone(),
        });
        self.line(&format!("$ tether {}", quoted.collect::<Vec<_>>().join(" ")));
    }

    /// What a client said and was told.
    pub(super) fn connected(&mut self, args: &[String], lines: &[String]) {
        self.ran(&[&["acp".to_owned()], args].concat());
        lines.iter().for_each(|line| self.line(line));
        self.line("");
    }

    pub(super) fn ended(&mut self, status: i32, stdout: &str) {
        self.line(&format!("exit status {status}"));
        self.block("printed", stdout.lines());
    }

    /// Of JSON lines, those of some types.
    pub(super) fn ended_with_lines(&mut self, status: i32, stdout: &str, types: &[String]) {
        self.line(&format!("exit status {status}"));
        let kind = |line: &str| {
            let line: Value = serde_json::from_str(line).expect(line);
            line["type"].as_str().unwrap().to_owned()
        };
        let lines = stdout.lines().filter(|line| types.contains(&kind(line)));
        self.block(&format!("printed, of types {}", types.join(", ")), lines);
    }

    /// What was done without `tether`.
    pub(super) fn changed<'a>(&mut self, what: &str, lines: impl IntoIterator<Item = &'a str>) {
        self.line(&format!("# {what}"));
        lines.into_iter().for_each(|line| self.line(&format!("  {line}")));
        self.line("");
    }

    pub(super) fn told(&mut self, stderr: &str, any_order: bool) {
        let mut lines: Vec<&str> = stderr.lines().collect();
        if any_order {
            lines.sort_unstable();
        }
        self.block(if any_order { "told, in any order" } else { "told" }, lines);
        self.line("");
    }

    pub(super) fn asked(&mut self, questions: &[String]) {
        self.block("asked, and answered with yes", questions.iter().map(|question| question.trim_end()));
        self.line("");
    }

    /// Every file below directories of the world.
    pub(super) fn files<const N: usize>(&mut self, directories: [&str; N], world: &World, names: &Names) {
        for below in directories {
            let files = world.files(below);
            let told = files.iter().map(|(path, content)| {
                let path = path.display();
                match (below, world.path(below).join(path.to_string()).is_dir()) {
                    (_, true) => format!("{path}/"),
                    // The logs follow.
                    ("home", false) => path.to_string(),
                    (_, false) => format!("{path} {:?}", String::from_utf8_lossy(content)),
                }
            });
            let mut told: Vec<String> = told.map(|line| names.normal(&line, world)).collect();
            told.sort();
            let none = if told.is_empty() { "none" } else { "" };
            self.line(&format!("files of {below}: {none}{}", told.join(", ")));
        }
        self.line("");
    }

    pub(super) fn log(&mut self, id: &str, log: &Log, shown: &Shown<'_>, whole_requests: bool) {
        self.line(&format!("log of {id}"));
        self.line(&format!("  {}", log.header_line()));
        let events = log.events();
        let mut gap = Gap::default();
        for Event { seq, tag, data, .. } in &events {
            let is_shown = shown.has(tag);
            if is_shown {
                self.gap(&mut gap);
            }
            match *tag {
                "request/header" if is_shown || whole_requests => {
                    self.gap(&mut gap);
                    self.request(*seq, data, whole_requests);
                }
                _ if is_shown => self.line(&format!("  {seq} {tag} {data}")),
                _ => gap.add(*seq, tag),
            }
        }
        self.gap(&mut gap);
        self.line("");
    }

    fn gap(&mut self, gap: &mut Gap<'_>) {
        if let Some(line) = gap.take() {
            self.line(&format!("  {line}"));
        }
    }

    pub(super) fn text(&self) -> &str {
        self.text.trim_end()
    }

    /// What the model is told beside the conversation.
    fn request(&mut self, seq: u64, data: &RawValue, whole: bool) {
        let Parts { header: Told { system, tools } } = serde_json::from_str(data.get()).unwrap();
        let mut header: Value = serde_json::from_str(data.get()).unwrap();
        let names = tools.iter().map(|tool| {
            let tool: Value = serde_json::from_str(tool.get()).unwrap();
            tool["name"].as_str().unwrap().to_owned()
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let tools: String = tools.iter().map(|tool| format!("{tool}\n")).collect();
        let (prompt, new_prompt) = number(&mut self.prompts, &system);
        let (list, new_list) = number(&mut self.tools, &tools);
        header["header"]["system"] = format!("system prompt {prompt}").into();
        header["header"]["tools"] = format!("tools {list}: {names}").into();
        self.line(&format!("  {seq} request/header {header}"));
        if whole && new_prompt {
            self.block(&format!("  system prompt {prompt}"), system.lines());
        }
        if whole && new_list {
            self.block(&format!("  tools {list}"), tools.lines());
        }
    }

    fn block<'a>(&mut self, name: &str, lines: impl IntoIterator<Item = &'a str>) {
        let indent = name.len() - name.trim_start().len() + 2;
        let lines: Vec<&str> = lines.into_iter().collect();
        match lines[..] {
            // What is not there takes no line.
            [] => {}
            [only] => self.line(&format!("{name}: {only}")),
            _ => {
                self.line(&format!("{name}:"));
                lines.iter().for_each(|line| self.line(&format!("{:indent$}{line}", "")));
            }
        }
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{}", line.trim_end()).unwrap();
    }
}

/// What a request says beside the conversation, byte for byte.
#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    header: Told<'a>,
}

#[derive(Deserialize)]
struct Told<'a> {
    system: String,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// Which one it is, counted from 1, and whether it is new.
fn number(known: &mut Vec<String>, one: &str) -> (usize, bool) {
    match known.iter().position(|known| known == one) {
        Some(at) => (at + 1, false),
        None => {
            known.push(one.to_owned());
            (known.len(), true)
        }
    }
}
