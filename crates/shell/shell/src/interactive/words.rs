//! A command line as simple commands: enough of a shell's grammar to know which words are programs.

/// How deep constructs may nest. What is deeper is not understood.
const MAX_DEPTH: usize = 24;

/// A program with its arguments, as far as it can be told without running anything.
pub(super) struct Simple {
    pub(super) words: Vec<Word>,
    pub(super) stdin: Stdin,
}

/// One word, without its quotes.
#[derive(Clone, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether something in it is only known when it runs.
    pub(super) is_expanded: bool,
    /// Whether something in it was quoted.
    pub(super) is_quoted: bool,
}

/// Where a command reads from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stdin {
    /// From wherever the whole line does.
    Inherited,
    /// From a pipe, a file or a here document.
    Given,
}

/// The line is not understood.
pub(super) struct Unsure;

pub(super) type Sure<T> = Result<T, Unsure>;

/// The simple commands of a line; none where it is not understood as a whole.
pub(super) fn simple_commands(line: &str) -> Vec<Simple> {
    let mut lexer = Lexer { rest: line, found: Vec::new(), here: Vec::new(), depth: 0 };
    match lexer.commands(End::Line, Stdin::Inherited) {
        Ok(()) => lexer.found,
        Err(Unsure) => Vec::new(),
    }
}

/// Where a list of commands ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Line,
    Paren,
}

/// A here document that begins at the next line.
struct Here {
    delimiter: String,
    is_indented: bool,
}

pub(super) struct Lexer<'a> {
    pub(super) rest: &'a str,
    found: Vec<Simple>,
    here: Vec<Here>,
    depth: usize,
}

/// What is known of the command at hand.
struct Current {
    words: Vec<Word>,
    stdin: Stdin,
    /// What the next command reads from.
    base: Stdin,
    /// Where the commands of a subshell that has just ended begin.
    group: Option<usize>,
}

impl Current {
    fn keyword(&self) -> Option<&str> {
        self.words.first().filter(|word| !word.is_quoted && !word.is_expanded).map(|word| &*word.text)
    }
}

impl<'a> Lexer<'a> {
    pub(super) fn commands(&mut self, end: End, base: Stdin) -> Sure<()> {
        let mut now = Current { words: Vec::new(), stdin: base, base, group: None };
        loop {
            let Some(c) = self.peek() else {
                self.finish(&mut now, base);
                return if end == End::Line { Ok(()) } else { Err(Unsure) };
            };
            match c {
                ' ' | '\t' | '\r' => self.skip(1),
                '\\' if self.rest.starts_with("\\\n") => self.skip(2),
                '#' => self.skip(self.rest.find('\n').unwrap_or(self.rest.len())),
                '\n' => {
                    self.skip(1);
                    self.finish(&mut now, base);
                    self.here_documents();
                }
                ';' if self.rest.starts_with(";;") => return Err(Unsure),
                '&' if self.rest.starts_with("&>") => {
                    self.skip(2);
                    self.target()?;
                }
                ';' | '&' | '|' => self.operator(c, &mut now, base),
                '(' => self.parenthesis(&mut now)?,
                ')' if end == End::Paren => {
                    self.skip(1);
                    self.finish(&mut now, base);
                    return Ok(());
                }
                ')' => return Err(Unsure),
                '<' => self.input(&mut now)?,
                '>' if self.rest.starts_with(">(") => self.substitution(2, &mut now)?,
                '>' => {
                    self.skip(1);
                    self.target()?;
                }
                _ => self.one_word(&mut now)?,
            }
        }
    }

    fn operator(&mut self, c: char, now: &mut Current, base: Stdin) {
        let is_double = self.rest[1..].starts_with(c);
        self.skip(if is_double { 2 } else { 1 });
        let pipes = c == '|' && !is_double;
        if pipes && self.rest.starts_with('&') {
            self.skip(1);
        }
        self.finish(now, if pipes { Stdin::Given } else { base });
    }

    /// The command at hand ends, and the next one reads from `stdin`.
    fn finish(&mut self, now: &mut Current, stdin: Stdin) {
        let words = std::mem::take(&mut now.words);
        if !words.is_empty() {
            self.found.push(Simple { words, stdin: now.stdin });
        }
        // What was piped into a compound command is read by whatever is in it.
        now.stdin = if now.base == Stdin::Given { Stdin::Given } else { stdin };
        now.group = None;
    }

    fn one_word(&mut self, now: &mut Current) -> Sure<()> {
        let word = self.word()?;
        let is_descriptor = !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit());
        if is_descriptor && !word.is_quoted && self.rest.starts_with(['<', '>']) {
            return Ok(());
        }
        now.words.push(word);
        if now.words.len() > 1 {
            return Ok(());
        }
        match now.keyword() {
            Some("if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "{") => {
                now.words.clear();
                now.base = now.stdin;
            }
            Some("for" | "select") => now.base = now.stdin,
            Some("case") => return Err(Unsure),
            Some("[[") => self.past("]]")?,
            Some(_) | None => {}
        }
        Ok(())
    }

    fn parenthesis(&mut self, now: &mut Current) -> Sure<()> {
        if self.rest.starts_with("((") && now.words.is_empty() {
            return self.arithmetic();
        }
        self.skip(1);
        match now.words.len() {
            0 => {
                now.group = Some(self.found.len());
                let stdin = now.stdin;
                self.deeper(|lexer| lexer.commands(End::Paren, stdin))
            }
            // A function's name.
            1 if self.rest.trim_start_matches([' ', '\t']).starts_with(')') => {
                self.past(")")?;
                now.words.clear();
                Ok(())
            }
            _ => Err(Unsure),
        }
    }

    /// `<`, and everything that begins with it.
    fn input(&mut self, now: &mut Current) -> Sure<()> {
        if self.rest.starts_with("<(") {
            return self.substitution(2, now);
        }
        now.stdin = Stdin::Given;
        if let Some(group) = now.group {
            self.found[group..].iter_mut().for_each(|command| command.stdin = Stdin::Given);
        }
        if matches!(now.keyword(), Some("done" | "fi" | "}")) {
            self.found.iter_mut().for_each(|command| command.stdin = Stdin::Given);
        }
        if self.rest.starts_with("<<") && !self.rest.starts_with("<<<") {
            self.skip(2);
            let is_indented = self.rest.starts_with('-');
            self.skip(usize::from(is_indented));
            self.blanks();
            let delimiter = self.word()?.text;
            self.here.push(Here { delimiter, is_indented });
            return Ok(());
        }
        self.target()
    }

    /// `<(…)` or `>(…)`: a word that commands make.
    fn substitution(&mut self, opening: usize, now: &mut Current) -> Sure<()> {
        self.skip(opening);
        self.deeper(|lexer| lexer.commands(End::Paren, Stdin::Inherited))?;
        now.words.push(Word { is_expanded: true, ..Word::default() });
        Ok(())
    }

    /// What stands behind a redirection.
    fn target(&mut self) -> Sure<()> {
        self.skip(self.rest.len() - self.rest.trim_start_matches(['<', '>', '&', '|', ' ', '\t']).len());
        self.word().map(drop)
    }

    fn here_documents(&mut self) {
        for Here { delimiter, is_indented } in std::mem::take(&mut self.here) {
            while !self.rest.is_empty() {
                let (line, behind) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = behind;
                let line = if is_indented { line.trim_start_matches('\t') } else { line };
                if line == delimiter {
                    break;
                }
            }
        }
    }

    pub(super) fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Sure<T>) -> Sure<T> {
        if self.depth == MAX_DEPTH {
            return Err(Unsure);
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    pub(super) fn past(&mut self, end: &str) -> Sure<()> {
        self.rest = self.rest.split_once(end).ok_or(Unsure)?.1;
        Ok(())
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.skip(c.len_utf8());
        Some(c)
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}
