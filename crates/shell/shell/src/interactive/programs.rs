//! Which programs wait for a person, and when.

use super::words::{Simple, Stdin, Word};

const EDIT: &str = "change the file with a tool for files, or with `sed -i` or a here document";
const PAGE: &str = "leave it out: all of the output is taken, and what is long is kept in a file";
const LOOK: &str = "ask once, as with `ps aux` or `top -b -n 1`";
const AGAIN: &str = "run the command itself, and again when you want to know";
const WITHOUT: &str = "run the command itself, without it";
const THERE: &str = "say what to run there, as in `ssh -o BatchMode=yes HOST COMMAND`";
const PATCH: &str = "name the files, or choose with `git apply --cached`";
const PROGRAM: &str = "give it something to run: an expression, a file or a here document";
const STATEMENT: &str = "give it the statement as an argument or in a here document";
const DEBUG: &str = "say what to do, as in `gdb -batch -ex run -ex bt PROGRAM`";
const FILTER: &str = "use `fzf --filter TEXT`, or `grep`";

/// What runs another program, and those of its options that take a word of their own.
const PREFIXES: [(&str, &[&str]); 6] = [
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-D", "-R", "-U"]),
    ("doas", &["-u", "-C"]),
    ("env", &["-u", "-C"]),
    ("time", &["-f", "-o"]),
    ("nohup", &[]),
    ("exec", &["-a"]),
];

/// Letters of ssh's options that take a word of their own.
const SSH_TAKES: &str = "BbcDEeFIiJLlmOopQRSWw";

/// Options of git itself that take a word of their own.
const GIT_TAKES: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// What of a command waits for a person, and what to do instead.
pub(super) fn waits(command: &Simple) -> Option<(String, &'static str)> {
    let words = program(&command.words);
    let (first, args) = words.split_first()?;
    if first.is_expanded {
        return None;
    }
    let name = first.text.rsplit('/').next().unwrap_or_default();
    let has = |options: &[&str]| args.iter().any(|arg| options.contains(&&*arg.text));
    if has(&["--version", "--help"]) {
        return None;
    }
    let told = |hint| Some((name.to_owned(), hint));
    let reads_nothing = command.stdin == Stdin::Inherited;
    match name {
        "vi" | "vim" | "nvim" | "vimdiff" if !has(&["-es", "-Es", "-s", "--headless"]) => told(EDIT),
        "emacs" if !has(&["--batch", "-batch", "--script", "-script", "--daemon"]) => told(EDIT),
        "nano" | "pico" | "micro" | "hx" | "joe" | "mcedit" => told(EDIT),
        "most" => told(PAGE),
        "top" if !args.iter().any(|arg| is_short(arg) && arg.text.contains(['b', 'l'])) => told(LOOK),
        "htop" | "btop" => told(LOOK),
        "watch" => told(AGAIN),
        "tmux" => tmux(args),
        "screen"
            if !args
                .iter()
                .any(|arg| ["-d", "-ls", "-list", "-X", "-wipe", "-v"].iter().any(|o| arg.text.starts_with(o))) =>
        {
            told(WITHOUT)
        }
        "ssh" if reads_nothing && ssh_waits(args) => told(THERE),
        "git" if reads_nothing => git(args),
        "ipython" | "irb" | "ghci" | "node" | "deno" if reads_nothing && args.is_empty() => told(PROGRAM),
        python if is_python(python) && reads_nothing && args.is_empty() => told(PROGRAM),
        "psql" | "mysql" | "mariadb" if reads_nothing && args.is_empty() => told(STATEMENT),
        "sqlite3" if reads_nothing && args.len() <= 1 && !args.iter().any(is_short) => told(STATEMENT),
        "gdb" if reads_nothing && args.is_empty() => told(DEBUG),
        "fzf" if !args.iter().any(|arg| arg.text.starts_with("-f") || arg.text.starts_with("--filter")) => told(FILTER),
        "ranger" | "nnn" | "tig" | "lazygit" => told(WITHOUT),
        _ => None,
    }
}

/// The words from the program on: behind assignments, and behind what only runs another program.
fn program(mut words: &[Word]) -> &[Word] {
    loop {
        words = &words[words.iter().take_while(|word| is_assignment(word)).count()..];
        let Some((first, rest)) = words.split_first() else { return words };
        let Some((name, takes)) = PREFIXES.iter().find(|(name, _)| *name == first.text) else { return words };
        let mut rest = rest;
        while let Some((option, behind)) = rest.split_first().filter(|(option, _)| option.text.starts_with('-')) {
            let takes_one = takes.contains(&&*option.text);
            rest = if takes_one { behind.get(1..).unwrap_or_default() } else { behind };
        }
        // It may be about itself, as `sudo -l` and `env` are.
        if rest.is_empty() && *name != "time" {
            return &[];
        }
        words = rest;
    }
}

fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.text.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.strip_suffix(']').and_then(|name| name.split_once('[')).map_or(name, |(name, _)| name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_short(arg: &Word) -> bool {
    arg.text.starts_with('-') && !arg.text.starts_with("--") && arg.text.len() > 1
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

fn tmux(args: &[Word]) -> Option<(String, &'static str)> {
    let Some(command) = args.iter().find(|arg| !arg.text.starts_with('-')) else {
        return args.is_empty().then(|| ("tmux".to_owned(), WITHOUT));
    };
    let attaches = match &*command.text {
        "a" | "at" | "attach" | "attach-session" => true,
        "new" | "new-session" => !args.iter().any(|arg| is_short(arg) && arg.text.contains('d')),
        _ => false,
    };
    attaches.then(|| (format!("tmux {}", command.text), WITHOUT))
}

fn ssh_waits(args: &[Word]) -> bool {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg.is_expanded {
            return false;
        }
        if !is_short(arg) {
            // The host; a command would come behind it.
            return rest.next().is_none();
        }
        let letters = &arg.text[1..];
        if letters.contains(['N', 'f', 'O', 'W', 'Q', 'V', 'G', 'T']) {
            return false;
        }
        if letters.find(|c| SSH_TAKES.contains(c)).is_some_and(|at| at + 1 == letters.len()) {
            rest.next();
        }
    }
    false
}

/// Without anybody to answer, these choose nothing and say that all went well. What opens an editor is not among them: that of
/// every command takes what it is given as it is.
fn git(args: &[Word]) -> Option<(String, &'static str)> {
    let mut rest = args;
    while let Some((option, behind)) = rest.split_first().filter(|(option, _)| option.text.starts_with('-')) {
        let takes_one = GIT_TAKES.contains(&&*option.text);
        rest = if takes_one { behind.get(1..).unwrap_or_default() } else { behind };
    }
    let (command, args) = rest.split_first()?;
    let options: &[&str] = match &*command.text {
        "add" => &["-p", "-i", "--patch", "--interactive"],
        "commit" => &["-p", "--patch", "--interactive"],
        "checkout" | "restore" | "reset" => &["-p", "--patch"],
        // Of what it only shows, `-p` is a form.
        "stash"
            if args.first().is_none_or(|arg| arg.text.starts_with('-') || ["push", "save"].contains(&&*arg.text)) =>
        {
            &["-p", "--patch"]
        }
        _ => return None,
    };
    let given = args.iter().take_while(|arg| arg.text != "--");
    let option = given.map(|arg| &*arg.text).find(|arg| options.contains(arg))?;
    Some((format!("git {} {option}", command.text), PATCH))
}
