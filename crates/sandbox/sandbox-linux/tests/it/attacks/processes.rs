//! Other processes: looking into them, ending them, outliving the command.

use sandbox::Mode;
use subprocess::How;

use super::{Attack, hold, usable};
use crate::runs::{confined, sh};
use crate::who::Who;
use crate::yard::{Home, Yard};

#[test]
fn the_harness_is_out_of_reach() {
    hold(&[
        Attack::sh("signal", "kill -9 $VICTIM && sleep 0.2; kill -STOP $VICTIM"),
        Attack::program("signal by handle"),
        Attack::program("trace"),
        Attack::program("memory"),
        Attack::sh("environment", "cat /proc/$VICTIM/environ; cat /proc/[0-9]*/environ"),
        Attack::sh("descriptors of another process", "ls -l /proc/$VICTIM/fd/0 && echo ESCAPED"),
        Attack::program("limits of others"),
        Attack::program("handles of others"),
    ]);
}

#[test]
fn nothing_outlives_the_command() {
    hold(&[
        // Without a sandbox the guard ends them as well.
        Attack::sh("background", "sleep 300 & exit 0").harmless_alone(),
        Attack::sh("new session", "setsid sleep 300 & exit 0").harmless_alone(),
        Attack::sh("closed streams", "setsid sleep 300 >/dev/null 2>&1 </dev/null & exit 0").harmless_alone(),
        Attack::sh("second fork", "(setsid sh -c 'sleep 300 & sleep 300' >/dev/null 2>&1 &) ; exit 0").harmless_alone(),
        Attack::sh("deaf", "(trap '' TERM HUP INT; setsid sleep 300 >/dev/null 2>&1 &) ; exit 0").harmless_alone(),
        Attack::sh("stopped", "sleep 300 & kill -STOP $!; exit 0").harmless_alone(),
    ]);
}

#[test]
fn nobody_gets_more_rights() {
    hold(&[
        Attack::sh("set-user-id program", "[ -u $OUT/id ] && [ $(id -u) != 0 ] && [ $($OUT/id -u) = 0 ] && echo ESCAPED").harmful_as_root(),
        Attack::sh("own set-user-id program", "cp /usr/bin/id mine && chmod 4755 mine; [ $(./mine -u) = $(id -u) ] || echo ESCAPED")
            .writing()
            .harmless_alone(),
        Attack::program("capabilities"),
        Attack::sh("sudo and su", "sudo -n id 2>/dev/null | grep -q uid=0 && [ $(id -u) != 0 ] && echo ESCAPED; su -c 'echo ESCAPED' nobody </dev/null")
            .harmless_alone(),
        Attack::sh(
            "preloaded library",
            r#"cat > e.c <<'C'
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
__attribute__((constructor)) void at_start(void) {
    char path[4096];
    open(strcat(strcpy(path, getenv("OUT")), "/new"), O_CREAT | O_WRONLY, 0600);
}
C
            cc -shared -fPIC -o e.so e.c || exit 0; LD_PRELOAD=$PWD/e.so /bin/true; [ -u $OUT/id ] && LD_PRELOAD=$PWD/e.so $OUT/id"#,
        )
        .writing(),
    ]);
}

/// Whoever could write to the first process's descriptors would say how the command ended.
#[test]
fn reports_cannot_be_forged() {
    let script = r#"for p in /proc/[0-9]*; do for f in $p/fd/*; do
        [ "$p" = "/proc/$$" ] || printf '{"report":"ended","code":77}\n' > $f; done; done 2>/dev/null; exit 5"#;
    for (tier, sandbox, _) in usable() {
        for who in Who::all() {
            let yard = Yard::new(*who, Home::Outside);
            let ran = confined(sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
            assert_eq!((ran.how, &ran.notes[..]), (How::Exited(5), &[][..]), "{tier:?} {who}: {}", ran.output.text);
        }
    }
}
