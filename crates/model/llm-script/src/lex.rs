/// Blocks may be this deep in each other.
pub(crate) const MAX_DEPTH: usize = 32;

/// What is wrong, and at which byte.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) what: String,
}

/// A word of a statement, unquoted.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) at: usize,
    pub(crate) text: String,
    /// Whether it was written without quotes, and so may be a keyword.
    pub(crate) bare: bool,
}

/// A place in a script, and how to go on from there. Never recurses.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Word {
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.bare && self.text == keyword
    }
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Goes past one character.
    pub(crate) fn bump(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    /// Goes past spaces and a comment, up to the line's end.
    pub(crate) fn spaces(&mut self) {
        self.skip(|c| c.is_whitespace() && c != '\n');
        if self.peek() == Some('#') {
            self.skip(|c| c != '\n');
        }
    }

    /// Goes past spaces, comments, line ends and whatever `more` says.
    pub(crate) fn blank(&mut self, more: &[char]) {
        loop {
            let before = self.at;
            self.spaces();
            self.skip(|c| c == '\n' || more.contains(&c));
            if self.at == before {
                return;
            }
        }
    }

    /// The words from here to the statement's end or to a block.
    pub(crate) fn words(&mut self) -> Result<Vec<Word>, Fault> {
        let mut words = Vec::new();
        loop {
            self.spaces();
            match self.peek() {
                None | Some('\n' | ';' | '&' | '{' | '}') => return Ok(words),
                Some(_) => words.push(self.word()?),
            }
        }
    }

    /// The word that begins here.
    pub(crate) fn word(&mut self) -> Result<Word, Fault> {
        let at = self.at;
        let bare = !matches!(self.peek(), Some('"' | '\''));
        if !bare {
            let text = self.quoted()?;
            return match self.peek() {
                Some(c) if !ends_word(c) => Err(self.fault(self.at, "a space is missing after this closing quote")),
                _ => Ok(Word { at, text, bare }),
            };
        }
        self.skip(|c| !ends_word(c));
        let text = &self.text[at..self.at];
        match text.find(['"', '\'']) {
            Some(quote) => Err(self.fault(at + quote, "a quote inside a bare word: quote the whole word")),
            None => Ok(Word { at, text: text.to_owned(), bare }),
        }
    }

    /// What stands in the block that begins here, without the space around it.
    pub(crate) fn block(&mut self) -> Result<&'a str, Fault> {
        let open = self.at;
        self.bump();
        let (mut depth, mut at_statement) = (1, true);
        loop {
            let at = self.at;
            let Some(c) = self.peek() else {
                let why = "this `{` is never closed (what is quoted or behind a `#` does not count)";
                return Err(self.fault(open, why));
            };
            match c {
                '"' | '\'' => {
                    self.skip_quoted()?;
                    at_statement = false;
                }
                '#' => self.spaces(),
                '{' => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(self.fault(at, format!("blocks are nested deeper than {MAX_DEPTH}")));
                    }
                    self.bump();
                    at_statement = true;
                }
                '}' => {
                    depth -= 1;
                    self.bump();
                    if depth == 0 {
                        return Ok(self.text[open + 1..at].trim());
                    }
                    at_statement = false;
                }
                '\n' | ';' | '&' => {
                    self.bump();
                    at_statement = true;
                }
                c if c.is_whitespace() => self.bump(),
                _ => {
                    self.skip(|c| !ends_word(c));
                    if at_statement && &self.text[at..self.at] == "call" {
                        self.skip_tool()?;
                        self.arguments()?;
                    }
                    at_statement = false;
                }
            }
        }
    }

    /// Raw arguments up to the statement's end: the line's end, or a `;`, `&`, comment or unmatched `}` that is in no
    /// JSON string; or one word in single quotes.
    pub(crate) fn arguments(&mut self) -> Result<String, Fault> {
        self.spaces();
        if self.peek() == Some('\'') {
            return self.quoted();
        }
        let start = self.at;
        let (mut in_string, mut braces, mut before) = (false, 0_usize, ' ');
        while let Some(c) = self.peek() {
            match c {
                '\n' => break,
                '\\' if in_string => {
                    self.bump();
                    if self.peek() == Some('\n') {
                        break;
                    }
                }
                '"' => in_string = !in_string,
                _ if in_string => {}
                ';' | '&' => break,
                '#' if before.is_whitespace() => break,
                '{' => braces += 1,
                '}' if braces == 0 => break,
                '}' => braces -= 1,
                _ => {}
            }
            before = c;
            self.bump();
        }
        Ok(self.text[start..self.at].trim_end().to_owned())
    }

    pub(crate) fn fault(&self, at: usize, what: impl Into<String>) -> Fault {
        Fault { at, what: what.into() }
    }

    fn quoted(&mut self) -> Result<String, Fault> {
        let open = self.at;
        self.skip_quoted()?;
        let inside = &self.text[open + 1..self.at - 1];
        if self.text[open..].starts_with('\'') { Ok(inside.to_owned()) } else { unescape(inside, open + 1) }
    }

    fn skip_quoted(&mut self) -> Result<(), Fault> {
        let (open, quote) = (self.at, self.peek());
        self.bump();
        loop {
            let c = self.peek();
            self.bump();
            match c {
                None => return Err(self.fault(open, "this quote is never closed")),
                Some('\\') if quote == Some('"') => self.bump(),
                Some(_) if c == quote => return Ok(()),
                Some(_) => {}
            }
        }
    }

    fn skip_tool(&mut self) -> Result<(), Fault> {
        self.spaces();
        match self.peek() {
            Some('"' | '\'') => self.skip_quoted(),
            _ => {
                self.skip(|c| !ends_word(c));
                Ok(())
            }
        }
    }

    fn skip(&mut self, passes: impl Fn(char) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.find(|c| !passes(c)).unwrap_or(rest.len());
    }
}

/// Whether a bare word ends before this character.
pub(crate) fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, ';' | '&' | '{' | '}')
}

fn unescape(inside: &str, at: usize) -> Result<String, Fault> {
    let mut text = String::with_capacity(inside.len());
    let mut chars = inside.char_indices();
    while let Some((offset, c)) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        text.push(match chars.next() {
            Some((_, 'n')) => '\n',
            Some((_, 't')) => '\t',
            Some((_, c @ ('"' | '\\' | '{' | '}'))) => c,
            _ => {
                let what = r#"no such escape; there are \n \t \" \\ \{ \}, and 'raw' words have none"#.into();
                return Err(Fault { at: at + offset, what });
            }
        });
    }
    Ok(text)
}
