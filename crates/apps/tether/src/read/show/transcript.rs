//! A log as people read it.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

use anstyle::Style;
use llm::{Content, Message, Usage};
use permission::PresetChosen;
use policy_audit::{Knob, name_of};
use sandbox_policy::ModeSet;
use session::{
    AssistantMessage, DamagedPayload, EndSeed, Event, Header, InboxAccepted, InboxClaimed, InboxDiscarded, MessageId,
    RequestHeaderEvent, SessionTitle, Source, StepEnd, StepStart, ToolCalled, ToolReturned, TurnEnd, TurnStart,
    UserMessage,
};
use session_store::Reading;
use subagent::Descriptor;
use user_approval::{ApprovalAsked, ApprovalDecided, PolicySet};

use crate::read::style::{BAD, BOLD, DIM, GOOD, NOTABLE};
use crate::read::text::{block, brief, count, first_lines, local_time};
use crate::read::tree::{add, ending};

/// How many lines of a result are shown.
const RESULT_LINES: usize = 8;
/// How many lines of what the harness tells the model, and of a thought, are shown.
const ASIDE_LINES: usize = 6;
/// The longest line of either, in characters.
const WIDTH: usize = 160;
/// The longest name, in characters.
const NAME: usize = 80;

/// Writes a transcript.
pub(super) fn tell(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let log = reading.decoded.log();
    let mut transcript = Transcript { out, calls: HashMap::new(), waiting: BTreeMap::new(), usage: Usage::default() };
    transcript.header(log.header(), reading.holder)?;
    for event in log.events().iter() {
        match Known::of(event) {
            Ok(known) => transcript.event(event, known)?,
            Err(damaged) => transcript.damaged(&damaged)?,
        }
    }
    transcript.waiting()
}

struct Transcript<'a> {
    out: &'a mut dyn Write,
    /// Which tool was called.
    calls: HashMap<(u32, u32, Arc<str>), Arc<str>>,
    /// Accepted and not read yet.
    waiting: BTreeMap<MessageId, Arc<Message>>,
    /// Of this turn.
    usage: Usage,
}

/// The events that this program knows.
enum Known<'a> {
    TurnStart(&'a TurnStart),
    TurnEnd(&'a TurnEnd),
    Step,
    Request(&'a RequestHeaderEvent),
    User(&'a UserMessage),
    Assistant(&'a AssistantMessage),
    Call(&'a ToolCalled),
    Result(&'a ToolReturned),
    Accepted(&'a InboxAccepted),
    Claimed(&'a InboxClaimed),
    Discarded(&'a InboxDiscarded),
    Title(&'a SessionTitle),
    EndSeed,
    Mode(&'a ModeSet),
    Policy(&'a PolicySet),
    Preset(&'a PresetChosen),
    Asked(&'a ApprovalAsked),
    Decided(&'a ApprovalDecided),
    Descriptor(&'a Descriptor),
    Unknown,
}

impl<'a> Known<'a> {
    fn of(event: &'a Event) -> Result<Self, DamagedPayload> {
        type Attempt<'a> = fn(&'a Event) -> Result<Option<Known<'a>>, DamagedPayload>;
        let attempts: [Attempt<'a>; 20] = [
            |event| Ok(event.decode()?.map(Self::TurnStart)),
            |event| Ok(event.decode()?.map(Self::TurnEnd)),
            |event| Ok(event.decode::<StepStart>()?.map(|_| Self::Step)),
            |event| Ok(event.decode::<StepEnd>()?.map(|_| Self::Step)),
            |event| Ok(event.decode()?.map(Self::Request)),
            |event| Ok(event.decode()?.map(Self::User)),
            |event| Ok(event.decode()?.map(Self::Assistant)),
            |event| Ok(event.decode()?.map(Self::Call)),
            |event| Ok(event.decode()?.map(Self::Result)),
            |event| Ok(event.decode()?.map(Self::Accepted)),
            |event| Ok(event.decode()?.map(Self::Claimed)),
            |event| Ok(event.decode()?.map(Self::Discarded)),
            |event| Ok(event.decode()?.map(Self::Title)),
            |event| Ok(event.decode::<EndSeed>()?.map(|_| Self::EndSeed)),
            |event| Ok(event.decode()?.map(Self::Mode)),
            |event| Ok(event.decode()?.map(Self::Policy)),
            |event| Ok(event.decode()?.map(Self::Preset)),
            |event| Ok(event.decode()?.map(Self::Asked)),
            |event| Ok(event.decode()?.map(Self::Decided)),
            |event| Ok(event.decode()?.map(Self::Descriptor)),
        ];
        for attempt in attempts {
            if let Some(known) = attempt(event)? {
                return Ok(known);
            }
        }
        Ok(Self::Unknown)
    }
}

impl Transcript<'_> {
    fn header(&mut self, header: &Header, holder: Option<u32>) -> io::Result<()> {
        let (id, created, cwd) = (header.id(), local_time(header.created_at()), brief(header.cwd(), WIDTH));
        write!(self.out, "{BOLD}session {id}{BOLD:#} · {created} · {cwd}")?;
        if let Some(lineage) = header.lineage() {
            let (parent, seq, depth) = (lineage.parent(), lineage.parent_seq(), lineage.depth());
            write!(self.out, " · child of {parent} (at seq {seq}), depth {depth}")?;
        }
        if let Some(pid) = holder {
            write!(self.out, " · {NOTABLE}open in process {pid}{NOTABLE:#}")?;
        }
        writeln!(self.out)
    }

    fn event(&mut self, event: &Event, known: Known<'_>) -> io::Result<()> {
        match known {
            Known::TurnStart(TurnStart { turn }) => {
                self.usage = Usage::default();
                writeln!(self.out, "\n{DIM}── turn {turn} ──{DIM:#}")
            }
            Known::TurnEnd(end) => self.turn_end(end),
            Known::Step => Ok(()),
            Known::Request(request) => {
                let (route, tools) = (request.header.route().to_string(), request.header.tools.len());
                self.remark(&format!("model {}, {tools} tools", brief(&route, NAME)))
            }
            Known::User(said) => self.user(said),
            Known::Assistant(said) => self.assistant(said),
            Known::Call(call) => self.call(call),
            Known::Result(result) => self.result(result),
            Known::Accepted(accepted) => {
                self.waiting.insert(accepted.id, accepted.message.clone());
                Ok(())
            }
            Known::Claimed(InboxClaimed { ids }) => {
                self.waiting.retain(|id, _| !ids.contains(id));
                Ok(())
            }
            Known::Discarded(InboxDiscarded { ids, cause }) => {
                self.waiting.retain(|id, _| !ids.contains(id));
                self.remark(&format!("{} waiting messages discarded: {}", ids.len(), brief(cause, WIDTH)))
            }
            Known::Title(SessionTitle { title, source }) => {
                self.remark(&format!("title: {} ({})", brief(title, WIDTH), brief(source, NAME)))
            }
            Known::EndSeed => {
                // What waited in copied history is the parent's to read.
                self.waiting.clear();
                writeln!(self.out, "\n{DIM}── the history copied from the parent ends here ──{DIM:#}")
            }
            Known::Mode(set) => self.knob(set),
            Known::Policy(set) => self.knob(set),
            Known::Preset(PresetChosen { name }) => self.notable(&format!("preset: {}", brief(name, NAME))),
            Known::Asked(asked) => {
                let tool = brief(&asked.tool, NAME);
                let what = asked.reason.as_deref().map_or_else(String::new, |reason| brief(reason, WIDTH));
                self.notable(&format!("{tool} asks: {what}"))
            }
            Known::Decided(ApprovalDecided { outcome, .. }) => self.notable(&format!("answer: {}", name_of(outcome))),
            Known::Descriptor(descriptor) => {
                let label = descriptor.label.as_deref().map_or_else(String::new, |label| brief(label, NAME) + ", ");
                let (provider, mode) = (brief(&descriptor.provider, NAME), name_of(&descriptor.mode));
                self.remark(&format!("child: {label}{provider}, {mode}"))
            }
            Known::Unknown => {
                let (seq, tag) = (event.seq(), brief(event.tag(), NAME));
                self.notable(&format!("{tag}: unknown event (seq {seq})"))
            }
        }
    }

    fn turn_end(&mut self, TurnEnd { turn, reason }: &TurnEnd) -> io::Result<()> {
        let style = if ending(reason).0 == "completed" { GOOD } else { BAD };
        let told = match ending(reason) {
            (word, Some(why)) => format!("{word}: {}", brief(why, WIDTH)),
            (word, None) => word.to_owned(),
        };
        let tokens = count(self.usage.input_tokens.saturating_add(self.usage.output_tokens));
        writeln!(self.out, "{DIM}── turn {turn}:{DIM:#} {style}{told}{style:#} {DIM}· {tokens} tokens ──{DIM:#}")
    }

    fn user(&mut self, UserMessage { message, source, .. }: &UserMessage) -> io::Result<()> {
        let text = text_of(&message.content);
        let who = match source {
            Source::Prompt => {
                writeln!(self.out, "{BOLD}prompt{BOLD:#}")?;
                return block(self.out, "  ", Style::new(), &text);
            }
            Source::RuntimeContext => "context",
            Source::Report => "report",
            Source::Notice => "notice",
            Source::Other => "from an unknown source",
        };
        writeln!(self.out, "{DIM}{who}{DIM:#}")?;
        match source {
            Source::RuntimeContext => first_lines(self.out, "  ", DIM, &text, ASIDE_LINES, WIDTH),
            Source::Prompt | Source::Report | Source::Notice | Source::Other => block(self.out, "  ", DIM, &text),
        }
    }

    fn assistant(&mut self, said: &AssistantMessage) -> io::Result<()> {
        if let Some(usage) = &said.usage {
            add(&mut self.usage, usage);
        }
        for part in &said.message.content {
            match part {
                Content::Text { text } => block(self.out, "", Style::new(), text)?,
                Content::Thinking { text, .. } => first_lines(self.out, "  ", DIM, text, ASIDE_LINES, WIDTH)?,
                Content::Image { media_type, .. } => writeln!(self.out, "{}", image(media_type))?,
                // Told when they run.
                Content::ToolCall(_) | Content::ToolResult { .. } => {}
            }
        }
        if said.interrupted { writeln!(self.out, "{BAD}(cut off){BAD:#}") } else { Ok(()) }
    }

    fn call(&mut self, call: &ToolCalled) -> io::Result<()> {
        let (name, arguments) = (brief(&call.name, NAME), brief(&call.arguments, WIDTH));
        self.calls.insert((call.turn, call.step, call.call_id.clone()), call.name.clone());
        writeln!(self.out, "▸ {BOLD}{name}{BOLD:#} {arguments}")
    }

    fn result(&mut self, result: &ToolReturned) -> io::Result<()> {
        let name = self.calls.get(&(result.turn, result.step, result.call_id.clone()));
        let name = name.map_or_else(|| "a call that was not run".to_owned(), |name| brief(name, NAME));
        let code = result.error.as_ref().map_or_else(String::new, |error| format!(" ({})", brief(&error.code, NAME)));
        match result.is_error {
            true => writeln!(self.out, "  {BAD}✗ {name} failed{code}{BAD:#}")?,
            false => writeln!(self.out, "  {GOOD}✓{GOOD:#} {name}")?,
        }
        let style = if result.is_error { BAD } else { DIM };
        first_lines(self.out, "    ", style, &text_of(&result.content), RESULT_LINES, WIDTH)
    }

    fn knob<K: Knob>(&mut self, knob: &K) -> io::Result<()> {
        self.notable(&format!("{} {}: {} ({})", K::NAME, K::KEY, name_of(&knob.value()), knob.source()))
    }

    fn damaged(&mut self, damaged: &DamagedPayload) -> io::Result<()> {
        writeln!(self.out, "{BAD}✗ {}{BAD:#}", brief(&damaged.to_string(), WIDTH))
    }

    /// What was accepted and never read.
    fn waiting(&mut self) -> io::Result<()> {
        for message in std::mem::take(&mut self.waiting).into_values() {
            writeln!(self.out, "{NOTABLE}waiting to be read{NOTABLE:#}")?;
            block(self.out, "  ", Style::new(), &text_of(&message.content))?;
        }
        Ok(())
    }

    fn remark(&mut self, remark: &str) -> io::Result<()> {
        writeln!(self.out, "{DIM}· {remark}{DIM:#}")
    }

    fn notable(&mut self, notable: &str) -> io::Result<()> {
        writeln!(self.out, "{NOTABLE}· {notable}{NOTABLE:#}")
    }
}

/// Its text; of a picture, that there is one.
fn text_of(content: &[Content]) -> String {
    let part = |part: &Content| match part {
        Content::Text { text } => text.to_string(),
        Content::Image { media_type, .. } => image(media_type),
        Content::Thinking { .. } | Content::ToolCall(_) | Content::ToolResult { .. } => String::new(),
    };
    content.iter().map(part).collect()
}

fn image(media_type: &str) -> String {
    format!("[picture, {}]", brief(media_type, NAME))
}
