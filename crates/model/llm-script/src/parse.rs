use std::iter::Peekable;
use std::time::Duration;
use std::vec::IntoIter;

use crate::lex::{Cursor, Fault, Word};
use crate::play::{MAX_WAIT, cut};
use crate::program::{Call, Delegate, Ending, KINDS, MODES, Program, Statement, When, Wider};

/// A script may have this many statements, those of its blocks not counted.
pub(crate) const MAX_STATEMENTS: usize = 1_000;

/// Every statement, as its errors call it.
pub(crate) const FORMS: [&str; 16] = [
    "read PATH",
    "write PATH TEXT",
    "edit PATH OLD NEW [all]",
    "list [PATH]",
    "glob PATTERN",
    "grep PATTERN [PATH]",
    "bash COMMAND",
    "call TOOL JSON",
    "spawn [LABEL] { SCRIPT }",
    "fork [LABEL] { SCRIPT }",
    "say TEXT",
    "wait MS",
    "hang",
    "fail KIND",
    "refuse",
    "max-tokens",
];

/// Not a script.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub(crate) struct ParseError {
    line: usize,
    column: usize,
    what: String,
}

/// Reads a script.
pub(crate) fn parse(text: &str) -> Result<Program, ParseError> {
    program(&mut Cursor::new(text)).map_err(|Fault { at, what }| {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        ParseError { line, column: before[line_start..].chars().count() + 1, what }
    })
}

fn program(cursor: &mut Cursor<'_>) -> Result<Program, Fault> {
    let (mut groups, mut statements, mut waited) = (Vec::new(), 0, Duration::ZERO);
    loop {
        cursor.blank(&[';']);
        if cursor.peek().is_none() {
            return Ok(Program { groups });
        }
        let mut group: Vec<Statement> = Vec::new();
        loop {
            let at = cursor.at();
            statements += 1;
            if statements > MAX_STATEMENTS {
                return Err(cursor.fault(at, format!("more than {MAX_STATEMENTS} statements")));
            }
            let statement = statement(cursor)?;
            match &statement {
                Statement::Wait(time) => waited += *time,
                Statement::End(_) if group.iter().any(|other| matches!(other, Statement::End(_))) => {
                    return Err(cursor.fault(at, "a step ends only once"));
                }
                Statement::Call(_) | Statement::Say(_) | Statement::End(_) => {}
            }
            if waited > MAX_WAIT {
                let what = format!("the waits of one step are longer than {} ms", MAX_WAIT.as_millis());
                return Err(cursor.fault(at, what));
            }
            group.push(statement);
            cursor.spaces();
            match cursor.peek() {
                Some('&') => {
                    cursor.bump();
                    cursor.blank(&[]);
                }
                None | Some('\n' | ';') => break,
                Some('}') => return Err(cursor.fault(cursor.at(), "this `}` closes nothing")),
                Some(_) => return Err(cursor.fault(cursor.at(), "expected the statement's end, a `;` or a `&`")),
            }
        }
        if group.iter().any(Statement::closes) {
            waited = Duration::ZERO;
        }
        groups.push(group);
    }
}

fn statement(cursor: &mut Cursor<'_>) -> Result<Statement, Fault> {
    let verb = match cursor.peek() {
        None | Some('\n' | ';' | '&') => return Err(cursor.fault(cursor.at(), "a statement is missing here")),
        Some('{') => return Err(cursor.fault(cursor.at(), "only `spawn` and `fork` take a block")),
        Some('}') => return Err(cursor.fault(cursor.at(), "this `}` closes nothing")),
        Some(_) => cursor.word()?,
    };
    let form = match FORMS.iter().find(|form| form.split(' ').next() == Some(&verb.text)) {
        Some(form) if verb.bare => *form,
        _ => return Err(cursor.fault(verb.at, format!("`{}` begins no statement", cut(&verb.text, 40)))),
    };
    let statement = match &*verb.text {
        "call" => return raw(cursor, verb.at, form),
        "spawn" => return delegate(cursor, verb.at, form, Delegate::Spawn),
        "fork" => return delegate(cursor, verb.at, form, Delegate::Fork),
        _ => simple(&verb, &mut Args::read(cursor, verb.at, form)?)?,
    };
    match cursor.peek() {
        Some('{') => {
            Err(cursor.fault(cursor.at(), "only `spawn` and `fork` take a block: quote a word with `{` in it"))
        }
        _ => Ok(statement),
    }
}

fn simple(verb: &Word, args: &mut Args) -> Result<Statement, Fault> {
    let statement = match &*verb.text {
        "read" => Statement::Call(Call::Read { path: args.word()? }),
        "write" => {
            let (path, content) = (args.word()?, args.word()?);
            Statement::Call(Call::Write { path, content, wider: args.wider()? })
        }
        "edit" => {
            let (path, old, new) = (args.word()?, args.word()?, args.word()?);
            let all = args.keyword("all").is_some();
            Statement::Call(Call::Edit { path, old, new, all, wider: args.wider()? })
        }
        "list" => Statement::Call(Call::List { path: args.optional() }),
        "glob" => Statement::Call(Call::Glob { pattern: args.word()? }),
        "grep" => Statement::Call(Call::Grep { pattern: args.word()?, path: args.optional() }),
        "bash" => Statement::Call(Call::Bash { command: args.word()?, wider: args.wider()? }),
        "say" => {
            let mut text = args.word()?;
            for word in args.words.by_ref() {
                text.push(' ');
                text.push_str(&word.text);
            }
            Statement::Say(text)
        }
        "wait" => Statement::Wait(args.time()?),
        "fail" => Statement::End(Ending::Fail(args.choice(&KINDS)?)),
        "hang" => Statement::End(Ending::Hang),
        "refuse" => Statement::End(Ending::Refuse),
        "max-tokens" => Statement::End(Ending::MaxTokens),
        other => unreachable!("`{other}` has a form and no meaning"),
    };
    args.done()?;
    Ok(statement)
}

fn raw(cursor: &mut Cursor<'_>, at: usize, form: &'static str) -> Result<Statement, Fault> {
    cursor.spaces();
    match cursor.peek() {
        None | Some('\n' | ';' | '&' | '{' | '}') => Err(cursor.fault(at, format!("`{form}` names no tool"))),
        Some(_) => {
            let tool = cursor.word()?.text;
            Ok(Statement::Call(Call::Raw { tool, arguments: cursor.arguments()? }))
        }
    }
}

fn delegate(cursor: &mut Cursor<'_>, at: usize, form: &'static str, kind: Delegate) -> Result<Statement, Fault> {
    let mut args = Args::read(cursor, at, form)?;
    if cursor.peek() != Some('{') {
        return Err(cursor.fault(at, format!("`{form}` has no block")));
    }
    let label = if args.next_is("via") || args.next_is("in") { None } else { args.optional() };
    let when = args.when()?;
    let via = args.keyword("via").map(|_| args.word()).transpose()?;
    args.done()?;
    let block = cursor.at();
    match cursor.block()? {
        "" => Err(cursor.fault(block, "this block is empty: a child needs a prompt")),
        prompt => Ok(Statement::Call(Call::Delegate { kind, label, when, via, prompt: prompt.to_owned() })),
    }
}

/// The words after a statement's verb.
struct Args {
    form: &'static str,
    /// Where the statement begins.
    at: usize,
    words: Peekable<IntoIter<Word>>,
}

impl Args {
    fn read(cursor: &mut Cursor<'_>, at: usize, form: &'static str) -> Result<Self, Fault> {
        Ok(Self { form, at, words: cursor.words()?.into_iter().peekable() })
    }

    fn word(&mut self) -> Result<String, Fault> {
        self.needed().map(|word| word.text)
    }

    fn optional(&mut self) -> Option<String> {
        self.words.next().map(|word| word.text)
    }

    fn next_is(&mut self, keyword: &str) -> bool {
        self.words.peek().is_some_and(|word| word.is(keyword))
    }

    fn keyword(&mut self, keyword: &str) -> Option<Word> {
        self.words.next_if(|word| word.is(keyword))
    }

    fn time(&mut self) -> Result<Duration, Fault> {
        let Word { at, text, .. } = self.needed()?;
        match text.parse().map(Duration::from_millis) {
            Ok(time) if time <= MAX_WAIT => Ok(time),
            _ => {
                let (most, got) = (MAX_WAIT.as_millis(), cut(&text, 40));
                Err(Fault { at, what: format!("`wait` takes milliseconds, 0 to {most}, not `{got}`") })
            }
        }
    }

    fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, Fault> {
        let Word { at, text, .. } = self.needed()?;
        choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            Fault { at, what: format!("`{}` is none of: {}", cut(&text, 40), names.join(", ")) }
        })
    }

    fn wider(&mut self) -> Result<Option<Wider>, Fault> {
        let Some(with) = self.keyword("with") else { return Ok(None) };
        let mode = self.choice(&MODES.map(|mode| (mode, mode)))?;
        match (self.keyword("because"), self.words.next()) {
            (Some(_), Some(reason)) => Ok(Some(Wider { mode, reason: reason.text })),
            _ => Err(Fault { at: with.at, what: "a reason is missing: `with MODE because REASON`".into() }),
        }
    }

    fn when(&mut self) -> Result<When, Fault> {
        let Some(Word { at, .. }) = self.keyword("in") else { return Ok(When::Now) };
        match self.keyword("background") {
            Some(_) => Ok(When::InBackground),
            None => Err(Fault { at, what: "`background` is missing: `in background`".into() }),
        }
    }

    fn done(&mut self) -> Result<(), Fault> {
        match self.words.next() {
            None => Ok(()),
            Some(Word { at, text, .. }) => {
                let (text, form) = (cut(&text, 40), self.form);
                Err(Fault { at, what: format!("`{text}` is a word too many for `{form}`: quote what has spaces") })
            }
        }
    }

    fn needed(&mut self) -> Result<Word, Fault> {
        let missing = || Fault { at: self.at, what: format!("a word is missing: `{}`", self.form) };
        self.words.next().ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests;
