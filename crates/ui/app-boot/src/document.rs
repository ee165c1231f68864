//! Walking a TOML document key by key, with the line of everything, and noting all that is wrong with it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use sandbox::one_line;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::numbers::{Whole, range};
use crate::{ConfigError, Located, Place};

/// How much of a name is shown, in characters.
const SHOWN: usize = 64;

/// A file, and what is wrong with it so far.
pub(crate) struct Document {
    file: Arc<Path>,
    /// Where each line begins, but for the first.
    lines: Vec<usize>,
    wrong: RefCell<Vec<(usize, String)>>,
}

/// A table. What is asked for is what it may have.
pub(crate) struct Keys<'d> {
    document: &'d Document,
    /// What its keys stand behind: `sandbox.`
    prefix: String,
    table: &'d DeTable<'d>,
    at: usize,
    known: Vec<&'static str>,
    later: &'static [&'static str],
}

/// A value under a key.
pub(crate) struct Item<'d> {
    document: &'d Document,
    name: String,
    at: usize,
    value: &'d Spanned<DeValue<'d>>,
}

impl Document {
    /// Reads a text: `read` takes what it knows of the outermost table. Gives what it took, or everything that is wrong.
    pub(crate) fn read<T>(file: &Path, text: &str, read: impl FnOnce(Keys<'_>) -> T) -> Result<T, Vec<ConfigError>> {
        let lines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1).collect();
        let document = Self { file: file.into(), lines, wrong: RefCell::default() };
        let parsed = DeTable::parse(text).map_err(|error| {
            document.complain(error.span().map_or(0, |span| span.start), error.message().replace('\n', "; "));
        });
        let taken = parsed.map(|table| read(Keys::new(&document, String::new(), table.get_ref(), 0)));
        let mut wrong = document.wrong.take();
        wrong.sort_by_key(|(at, _)| *at);
        let errors: Vec<_> = wrong.into_iter().map(|(at, what)| ConfigError::at(document.place(at), what)).collect();
        match (taken, errors.is_empty()) {
            (Ok(taken), true) => Ok(taken),
            _ => Err(errors),
        }
    }

    fn complain(&self, at: usize, message: impl Into<String>) {
        self.wrong.borrow_mut().push((at, message.into()));
    }

    fn place(&self, at: usize) -> Place {
        Place { file: self.file.clone(), line: self.lines.partition_point(|begin| *begin <= at) + 1 }
    }
}

impl<'d> Keys<'d> {
    fn new(document: &'d Document, prefix: String, table: &'d DeTable<'d>, at: usize) -> Self {
        Self { document, prefix, table, at, known: Vec::new(), later: &[] }
    }

    /// Keys that the format has and this version does not serve. Refused by name: what is written down and not kept would
    /// be worse than an error.
    pub(crate) fn later(mut self, later: &'static [&'static str]) -> Self {
        self.later = later;
        self
    }

    /// The value of a key that it may have.
    pub(crate) fn item(&mut self, key: &'static str) -> Option<Item<'d>> {
        self.known.push(key);
        let (found, value) = self.table.get_key_value(key)?;
        let name = format!("{}{key}", self.prefix);
        Some(Item { document: self.document, name, at: found.span().start, value })
    }

    /// The value of a key that it must have.
    pub(crate) fn required(&mut self, key: &'static str) -> Option<Item<'d>> {
        let found = self.item(key);
        if found.is_none() {
            self.complain(format!("`{}` lacks `{key}`", self.prefix.trim_end_matches('.')));
        }
        found
    }

    /// A key that only some may set: noted if it is there.
    pub(crate) fn refuse(&mut self, key: &'static str, why: &str) {
        if let Some(item) = self.item(key) {
            self.document.complain(item.at, format!("`{}` {why}", item.name));
        }
    }

    /// Every key and its value, in the order of the file. What it may have is then nothing else.
    pub(crate) fn any(self) -> Vec<(&'d str, Item<'d>)> {
        let mut all: Vec<_> = self.table.iter().collect();
        all.sort_by_key(|(key, _)| key.span().start);
        let item = |(key, value): (&'d Spanned<Cow<'d, str>>, _)| {
            let (at, key): (_, &'d str) = (key.span().start, key.get_ref());
            (key, Item { document: self.document, name: format!("{}{}", self.prefix, shown(key)), at, value })
        };
        all.into_iter().map(item).collect()
    }

    /// Notes every key that was not asked for.
    pub(crate) fn finish(self) {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            let near = |known: &&str| (strsim::jaro_winkler(name, known) * 1e6) as u64;
            let message = match self.known.iter().copied().max_by_key(near) {
                _ if self.later.contains(&name) => format!("`{}{name}` is not supported by this version", self.prefix),
                Some(nearest) => {
                    let known = self.known.join(", ");
                    format!("unknown key `{}`; did you mean `{nearest}`? There are: {known}", shown(name))
                }
                None => format!("unknown key `{}`", shown(name)),
            };
            self.document.complain(key.span().start, message);
        }
    }

    pub(crate) fn complain(&self, message: impl Into<String>) {
        self.document.complain(self.at, message);
    }

    pub(crate) fn place(&self) -> Place {
        self.document.place(self.at)
    }
}

impl<'d> Item<'d> {
    pub(crate) fn place(&self) -> Place {
        self.document.place(self.at)
    }

    /// Notes what is wrong with the value.
    pub(crate) fn complain(&self, message: impl Display) {
        self.document.complain(self.value.span().start.max(self.at), format!("`{}`: {message}", self.name));
    }

    fn expected<T>(&self, what: &str) -> Option<T> {
        let found = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.complain(format!("expected {what}, found {found}"));
        None
    }

    fn located<T>(&self, value: T) -> Option<Located<T>> {
        Some(Located { value, place: self.place() })
    }

    pub(crate) fn string(&self) -> Option<Located<&'d str>> {
        match self.value.get_ref() {
            DeValue::String(text) => self.located(text),
            _ => self.expected("a string"),
        }
    }

    pub(crate) fn boolean(&self) -> Option<Located<bool>> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => self.located(*value),
            _ => self.expected("a boolean, true or false"),
        }
    }

    /// A whole number, from `least` on.
    pub(crate) fn whole<N: Whole>(&self, least: N) -> Option<Located<N>> {
        let DeValue::Integer(integer) = self.value.get_ref() else { return self.expected("a whole number") };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        match number.and_then(|number| N::try_from(number).ok()).filter(|number| *number >= least) {
            Some(number) => self.located(number),
            None => {
                self.complain(format!("{integer} is not a whole number that fits: it is {}", range(&least)));
                None
            }
        }
    }

    /// What a string stands for; refused with its own words.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self) -> Option<Located<T>> {
        self.parsed_by(T::from_str)
    }

    pub(crate) fn parsed_by<T, E: Display>(&self, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<Located<T>> {
        let Located { value, place } = self.string()?;
        match parse(value) {
            Ok(value) => Some(Located { value, place }),
            Err(error) => {
                self.complain(error);
                None
            }
        }
    }

    /// What each of its strings stands for.
    pub(crate) fn each_parsed_by<T, E: Display>(
        &self,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<Located<T>>> {
        let items = self.array("an array of strings")?;
        Some(items.iter().filter_map(|item| item.parsed_by(&parse)).collect())
    }

    /// Strings, each with its own line.
    pub(crate) fn strings(&self) -> Option<Vec<Located<&'d str>>> {
        let items = self.array("an array of strings")?;
        Some(items.iter().filter_map(Item::string).collect())
    }

    /// Its keys, which stand behind its name.
    pub(crate) fn table(&self) -> Option<Keys<'d>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Some(Keys::new(self.document, format!("{}.", self.name), table, self.at)),
            _ => self.expected("a table"),
        }
    }

    /// The tables of an array of them.
    pub(crate) fn rows(&self) -> Option<Vec<Keys<'d>>> {
        let items = self.array(&format!("rows: write [[{}]]", self.name))?;
        Some(items.iter().filter_map(Item::table).collect())
    }

    /// The same in JSON, if there is one.
    pub(crate) fn json(&self) -> Option<Value> {
        match json(self.value.get_ref()) {
            Ok(value) => Some(value),
            Err(why) => {
                self.complain(why);
                None
            }
        }
    }

    fn array(&self, what: &str) -> Option<Vec<Item<'d>>> {
        let DeValue::Array(array) = self.value.get_ref() else { return self.expected(what) };
        let (document, name) = (self.document, &self.name);
        let item = |value: &'d Spanned<_>| Item { document, name: name.clone(), at: value.span().start, value };
        Some(array.iter().map(item).collect())
    }
}

/// A name that a stranger wrote, for a message.
pub(crate) fn shown(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    one_line(&shown).to_string()
}

/// The parser bounds how deep a value goes.
fn json(value: &DeValue<'_>) -> Result<Value, String> {
    Ok(match value {
        DeValue::String(text) => Value::from(&**text),
        DeValue::Integer(integer) => {
            let parsed = i64::from_str_radix(integer.as_str(), integer.radix());
            Value::from(parsed.map_err(|_| format!("{integer} is too large"))?)
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            Value::Number(number.ok_or_else(|| format!("{float} has no equal in JSON"))?)
        }
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Datetime(date) => return Err(format!("{date} is a date, which JSON does not have: quote it")),
        DeValue::Array(array) => array.iter().map(|item| json(item.get_ref())).collect::<Result<_, _>>()?,
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                Ok((key.get_ref().to_string(), json(value.get_ref())?))
            };
            Value::Object(table.iter().map(entry).collect::<Result<_, String>>()?)
        }
    })
}
