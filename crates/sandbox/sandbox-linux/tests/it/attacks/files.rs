//! Writing and reading where one may not, by name.

use super::{Attack, hold};

const OUTSIDE: &[Attack] = &[
    Attack::sh("dot dot", "echo x > ../outside/file"),
    Attack::sh("absolute path", "echo x > $OUT/file"),
    Attack::sh("new file", "echo x > $OUT/new"),
    Attack::sh("removal", "rm -rf $OUT/dir; rm -f $OUT/file"),
    Attack::sh("truncation", "truncate -s 0 $OUT/file"),
    Attack::sh("rename out of the workspace", "mv src/a.txt $OUT/dir/; mv src $OUT/"),
    Attack::sh("rename into the workspace", "mv $OUT/file here; mv $OUT/dir here"),
    Attack::sh("rename outside", "mv $OUT/file $OUT/renamed"),
    Attack::sh("directory outside", "mkdir $OUT/new"),
    Attack::sh("pipe outside", "mkfifo $OUT/new"),
    Attack::sh("link outside", "ln -s x $OUT/new; ln $OUT/file $OUT/new2"),
    Attack::sh("device as a target", "mknod node b 8 0 && echo ESCAPED; mknod $OUT/node c 1 3").harmless_alone(),
    Attack::sh("raw memory and disk", "head -c1 /dev/mem /dev/kmem /dev/port /dev/sda /dev/vda /dev/nvme0n1 2>&1 | grep -q '==>' && echo ESCAPED")
        .harmless_alone(),
    Attack::sh("path through a file", "echo x > src/a.txt/../../../outside/new; echo x > src/../../outside/new2"),
    Attack::sh("line break in a name", "echo x > \"$OUT/a\nb\""),
    Attack::sh("over-long name", "echo x > $OUT/$(head -c 300 /dev/zero | tr '\\0' a); echo x > $OUT/$(head -c 255 /dev/zero | tr '\\0' a)"),
    Attack::sh("own root of a process", "echo x > /proc/self/root$OUT/file"),
    Attack::sh("directory of a process", "cd src; echo x > /proc/self/cwd/../../outside/file"),
    Attack::sh("root of another process", "for pid in $VICTIM 1 $PPID; do echo x > /proc/$pid/root$OUT/file; done"),
    Attack::sh("directory as a descriptor", "exec 9< $OUT; echo x > /proc/self/fd/9/file; cd /proc/self/fd/9 && echo x > new"),
    Attack::sh("file as a descriptor", "exec 9< $OUT/file; echo x > /proc/self/fd/9; echo x >> /dev/fd/9"),
    Attack::sh("copy outside", "cp src/a.txt $OUT/dir/; cp -r src $OUT/dir"),
    Attack::sh("kernel settings", "for f in /proc/sys/kernel/hostname /proc/sysrq-trigger /sys/power/state; do [ -w $f ] && echo h 2>/dev/null >> $f && echo ESCAPED; done")
        .harmless_alone(),
    Attack::sh("another session's log", "cat $OWN/log; cat $OWN/../home/log; cat /proc/self/root$OWN/log"),
    Attack::sh("Tether's directory", "echo x >> $OWN/log; echo x > $OWN/new; rm $OWN/log"),
];

#[test]
fn nothing_outside_changes() {
    hold(OUTSIDE);
}

const BY_LINKS: &[Attack] = &[
    Attack::sh("link in the middle", "ln -s $OUT/dir l; echo x > l/file").writing(),
    Attack::sh("link as the target", "ln -s $OUT/file l; echo x > l").writing(),
    Attack::sh("dangling link", "ln -s $OUT/new l; echo x > l").writing(),
    Attack::sh("chain of links", "ln -s $OUT a; ln -s a b; ln -s b/dir c; echo x > c/new").writing(),
    Attack::sh("link in the temporary directory", "ln -s $OUT/file $TMPDIR/l; echo x > $TMPDIR/l").writing(),
    Attack::sh("hard link", "ln $OUT/file alias && echo x >> alias").writing(),
    Attack::sh("hard link by a descriptor", "exec 9< $OUT/file; ln -L /proc/self/fd/9 alias && echo x >> alias")
        .writing(),
    Attack::sh("hard link to a log", "ln $OWN/log alias && cat alias").writing(),
    Attack::program("directory swapped for a link").writing(),
    Attack::sh(
        "directory moved out while open",
        "mkdir d; cd d; mv ../d $OUT/d; echo x > x; mv ../d ../../d; echo x > $OUT/d/y",
    )
    .writing(),
    Attack::sh("other spelling", "echo x > ./.git/../.git/hooks/new; cp src/a.txt .git//hooks; mkdir -p .GIT/hooks; d=$(printf '.g\\342\\200\\214it'); mkdir -p $d/hooks; cp src/a.txt $d/hooks")
        .writing()
        .open_without_namespaces("protected paths"),
];

#[test]
fn nothing_outside_changes_by_links() {
    hold(BY_LINKS);
}

const HOME: &[Attack] = &[
    Attack::sh("its log is read", "cat own/home/log; cat $OWN/log").home_inside(),
    Attack::sh("its log is written", "echo x >> own/home/log; rm -f own/home/log").home_inside(),
    Attack::sh("something is put into it", "echo x > own/home/new; mkdir own/home/d").home_inside(),
    Attack::sh("it is replaced", "mv own/home own/x; mkdir own/home; echo x > own/home/log").home_inside(),
    Attack::sh("what it is in is replaced", "mv own x; mkdir -p own/home; echo x > own/home/log; cat x/home/log")
        .home_inside(),
    Attack::sh("it is linked", "ln own/home/log alias; ln -s home own/link; cat alias own/link/log").home_inside(),
    Attack::sh(
        "it is opened through the temporary directory",
        "ln -s $OWN $TMPDIR/l; cat $TMPDIR/l/log; echo x > $TMPDIR/l/new",
    )
    .home_inside(),
];

#[test]
fn its_own_directory_inside_the_workspace_is_out_of_reach() {
    hold(HOME);
}

/// What belongs to this user, and is changed without being opened.
#[test]
fn metadata_outside_does_not_change() {
    const METADATA: &str = "metadata";
    hold(&[
        Attack::sh("chmod", "chmod 777 $OUT/file $OUT/dir").open_without_namespaces(METADATA),
        Attack::sh("chown", "chown $(id -u):$(id -g) $OUT/file; chgrp $(id -g) $OUT/dir")
            .open_without_namespaces(METADATA),
        Attack::sh("utimes", "touch -d 2001-01-01 $OUT/file $OUT/dir").open_without_namespaces(METADATA),
        Attack::sh("chmod inside", "chmod 711 . src $TEMP $TMPDIR; touch -d 2001-01-01 src/a.txt $TMPDIR")
            .reading()
            .harmless_alone()
            .open_without_namespaces(METADATA),
        Attack::program("extended attributes").open_without_namespaces(METADATA),
        Attack::sh("metadata through a link", "ln -s $OUT/file l; chmod 777 l; touch -d 2001-01-01 l")
            .writing()
            .open_without_namespaces(METADATA),
    ]);
}
