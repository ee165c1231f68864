//! Programs that wait for a person at a terminal, or do nothing without one, told from a command line before it runs. What
//! works without one, as pagers do and git's editor as every command has it, is no such program.
//!
//! It is a courtesy and no defence: whatever is not understood for sure is let through, and then ends by its timeout.

mod programs;
mod quotes;
mod words;

/// The first program of a command line that would wait for a person, and what to do instead.
pub(crate) fn interactive(line: &str) -> Option<(String, &'static str)> {
    words::simple_commands(line).iter().find_map(programs::waits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn program(line: &str) -> Option<String> {
        interactive(line).map(|(program, _)| program)
    }

    #[test]
    fn what_waits_for_a_person_is_told() {
        let cases = [
            ("vim a.txt", "vim"),
            ("cd src && /usr/bin/nano a", "nano"),
            ("FOO=1 BAR='x y' vi", "vi"),
            ("sudo -u root -E vim /etc/hosts", "vim"),
            ("env -u HOME A=b nvim", "nvim"),
            ("time -p emacs x", "emacs"),
            ("exec \\vim", "vim"),
            ("nohup \"top\"", "top"),
            ("git log | most", "most"),
            ("if true; then most x; fi", "most"),
            ("while sleep 1; do htop; done", "htop"),
            ("(cd x; tmux)", "tmux"),
            ("{ screen; }", "screen"),
            ("echo \"$(vim x)\"", "vim"),
            ("! watch ls", "watch"),
            ("tmux new -s a", "tmux new"),
            ("tmux attach", "tmux attach"),
            ("ssh -p 22 host", "ssh"),
            ("ssh -vp22 -o A=b me@host", "ssh"),
            ("git -C x -c a=b add --interactive", "git add --interactive"),
            ("git commit -p -m x", "git commit -p"),
            ("git add -p", "git add -p"),
            ("git add -i .", "git add -i"),
            ("git checkout --patch main", "git checkout --patch"),
            ("git stash push -p", "git stash -p"),
            ("python3", "python3"),
            ("python3.12 ", "python3.12"),
            ("node\n", "node"),
            ("A=1 sqlite3;", "sqlite3"),
            ("sqlite3 a.db", "sqlite3"),
            ("psql", "psql"),
            ("mysql&", "mysql"),
            ("gdb || true", "gdb"),
            ("find . | fzf", "fzf"),
            ("cat <<EOF\nhello\nEOF\nvim x", "vim"),
            ("cat <<-'E F'\n\tit's\n\tE F\nvim x", "vim"),
            ("# note\nvim", "vim"),
            ("for f in a b; do vim $f; done", "vim"),
            ("echo a 2>&1 >/dev/null; vi", "vi"),
            ("echo $((1 << 2)); vi x", "vi"),
            ("[[ a =~ ^(b|c)$ ]] && vi x", "vi"),
            ("diff <(ls a) <(ls b) | most", "most"),
        ];
        for (line, want) in cases {
            assert_eq!(program(line).as_deref(), Some(want), "{line}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_let_through() {
        let cases = [
            "",
            "echo vim",
            "vimtutor-like",
            "which vim most",
            "command -v vim",
            "type vim",
            "apt-get install -y vim",
            "man ls",
            "MANPAGER=less man ls",
            "git log | less -R",
            "if true; then more x; fi",
            "vim --version",
            "vim -es -c '%s/a/b/' -c 'wq' a.txt",
            "nvim --headless +q",
            "emacs --batch -f x",
            "echo 'a; vim b'",
            "echo \"a && vi\"",
            "echo a\\; vim",
            "echo a # ; vim",
            "git commit -m \"$(cat <<'EOF'\nmore is better\nit's vim\nvi 'is'\nEOF\n)\"",
            "cat <<EOF > x\nvim\ntop\nEOF",
            "cat <<A <<B\nvim\nA\ntop\nB\n",
            "top -b -n 1",
            "top -bn1",
            "tmux ls",
            "tmux new-session -d -s a 'sleep 1'",
            "screen -ls",
            "screen -dmS a sleep 1",
            "ssh host uptime",
            "ssh -p 22 host -- ls",
            "ssh -N -L 1:2:3 host",
            "ssh -O exit host",
            "echo ls | ssh host",
            "ssh host < script",
            "ssh -V",
            "git rebase main",
            "git rebase --continue",
            "git stash show -p",
            "git stash list -p",
            "mc ls local",
            "PATH+=:/opt/vim; ls",
            "arr[0]=/usr/bin/vim",
            "git rebase -i --autosquash HEAD~3",
            "GIT_SEQUENCE_EDITOR='sed -i s/pick/fixup/' git rebase -i HEAD~2",
            "git commit",
            "git commit --amend",
            "git add -e",
            "git add . -- -p",
            "git log -p",
            "git show -p",
            "git diff -p",
            "git grep -i x",
            "git commit -i a -m x",
            "yes | git add -p",
            "python3 a.py",
            "python3 -c 'print(1)'",
            "python3 - <<EOF\n1\nEOF",
            "python3 <<'EOF'\nprint('it')\nEOF",
            "echo 1 | python3",
            "echo 1 | (cd x; python3)",
            "(cd x; python3) < a.py",
            "cat hosts | while read h; do python3; done",
            "while read h; do python3; done < hosts",
            "python3 < a.py",
            "python3 <<< 'print(1)'",
            "python3 $SCRIPT",
            "$EDITOR a",
            "$(which vim) a",
            "sqlite3 a.db 'select 1'",
            "sqlite3 a.db < x.sql",
            "echo .dump | sqlite3 a.db",
            "psql -c 'select 1'",
            "gdb -batch -ex bt ./a",
            "ls | fzf --filter x",
            "case $x in vim) vim;; esac",
            "vim() { echo; }; a=(vim vi); echo",
            "function vi { cat; }",
            "echo 'unterminated; vim",
            "vim ${x",
            "for vim in a b; do echo $vim; done",
            "'if' vim",
        ];
        for line in cases {
            assert_eq!(program(line), None, "{line}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for (open, close) in [("$(", ")"), ("(", ")"), ("\"${x:-", "}\""), ("`", "`"), ("$((", "))"), ("<(", ")")] {
            let line = format!("{}vim{}", open.repeat(20_000), close.repeat(20_000));
            assert_eq!(program(&line), None, "{open}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(line in "[a-z \\n'\"\\\\$(){}<>|&;#`=\\[\\]!-]{0,60}") {
            let _told = interactive(&line);
        }

        #[test]
        fn what_is_quoted_is_no_command(text in "[^']{0,40}") {
            prop_assert_eq!(program(&format!("echo '{}'", text)), None);
        }
    }
}
