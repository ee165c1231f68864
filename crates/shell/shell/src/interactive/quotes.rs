//! One word of a command line: its quotes, and what is expanded in it.

use super::words::{End, Lexer, Stdin, Sure, Unsure, Word};

impl Lexer<'_> {
    pub(super) fn word(&mut self) -> Sure<Word> {
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                '(' if word.text.ends_with('=') => {
                    // An array; what is in it are words.
                    self.skip(1);
                    self.deeper(|lexer| lexer.array())?;
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    self.skip(1);
                    let (quoted, behind) = self.rest.split_once('\'').ok_or(Unsure)?;
                    word.text.push_str(quoted);
                    word.is_quoted = true;
                    self.rest = behind;
                }
                '"' => self.double_quoted(&mut word)?,
                '\\' => {
                    self.skip(1);
                    word.is_quoted = true;
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(c) => word.text.push(c),
                    }
                }
                '`' => self.backquoted(&mut word)?,
                '$' => self.dollar(&mut word, false)?,
                c => {
                    self.skip(c.len_utf8());
                    word.text.push(c);
                }
            }
        }
        Ok(word)
    }

    fn array(&mut self) -> Sure<()> {
        loop {
            match self.peek().ok_or(Unsure)? {
                ')' => {
                    self.skip(1);
                    return Ok(());
                }
                ' ' | '\t' | '\r' | '\n' => self.skip(1),
                ';' | '&' | '|' | '(' | '<' | '>' => return Err(Unsure),
                _ => drop(self.word()?),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Sure<()> {
        self.skip(1);
        word.is_quoted = true;
        loop {
            match self.peek().ok_or(Unsure)? {
                '"' => {
                    self.skip(1);
                    return Ok(());
                }
                '\\' => {
                    self.skip(1);
                    word.text.extend(self.bump());
                }
                '`' => self.backquoted(word)?,
                '$' => self.dollar(word, true)?,
                c => {
                    self.skip(c.len_utf8());
                    word.text.push(c);
                }
            }
        }
    }

    fn backquoted(&mut self, word: &mut Word) -> Sure<()> {
        self.skip(1);
        word.is_expanded = true;
        loop {
            match self.bump().ok_or(Unsure)? {
                '`' => return Ok(()),
                '\\' => {
                    self.bump();
                }
                _ => {}
            }
        }
    }

    fn dollar(&mut self, word: &mut Word, in_quotes: bool) -> Sure<()> {
        self.skip(1);
        match self.peek() {
            Some('(') if self.rest.starts_with("((") => {
                word.is_expanded = true;
                self.arithmetic()
            }
            Some('(') => {
                word.is_expanded = true;
                self.skip(1);
                self.deeper(|lexer| lexer.commands(End::Paren, Stdin::Inherited))
            }
            Some('{') => {
                word.is_expanded = true;
                self.skip(1);
                self.deeper(|lexer| lexer.braces(in_quotes))
            }
            Some('\'') if !in_quotes => {
                self.skip(1);
                word.is_expanded = true;
                loop {
                    match self.bump().ok_or(Unsure)? {
                        '\'' => return Ok(()),
                        '\\' => {
                            self.bump();
                        }
                        _ => {}
                    }
                }
            }
            Some('"') if !in_quotes => self.double_quoted(word),
            Some(c) => {
                word.is_expanded |= c.is_alphanumeric() || "_?!#@*$-".contains(c);
                word.text.push('$');
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The rest of `${…}`.
    fn braces(&mut self, in_quotes: bool) -> Sure<()> {
        let mut ignored = Word::default();
        loop {
            match self.peek().ok_or(Unsure)? {
                '}' => {
                    self.skip(1);
                    return Ok(());
                }
                '\\' => {
                    self.skip(1);
                    self.bump();
                }
                '\'' if !in_quotes => {
                    self.skip(1);
                    self.past("'")?;
                }
                '"' => self.double_quoted(&mut ignored)?,
                '`' => self.backquoted(&mut ignored)?,
                '$' => self.dollar(&mut ignored, in_quotes)?,
                c => self.skip(c.len_utf8()),
            }
        }
    }

    /// `((…))`: parentheses are counted.
    pub(super) fn arithmetic(&mut self) -> Sure<()> {
        let mut open = 0_usize;
        loop {
            match self.bump().ok_or(Unsure)? {
                '(' => open += 1,
                ')' if open == 1 => return Ok(()),
                ')' => open -= 1,
                '\'' | '"' | '`' => return Err(Unsure),
                _ => {}
            }
        }
    }
}
