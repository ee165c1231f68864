//! Parts of the kernel that a command has no business with.

use super::{Attack, hold};

#[test]
fn the_kernel_refuses() {
    hold(&[
        Attack::program("io_uring"),
        Attack::program("program in memory"),
        Attack::program("keyrings"),
        Attack::program("namespaces"),
        Attack::sh("nested user namespace", "unshare -Ur sh -c 'echo ESCAPED'; unshare -m true && echo ESCAPED"),
        Attack::program("mounts").harmful_as_root(),
        // What it does alone is undone by itself.
        Attack::sh(
            "mount over",
            "mount --bind src $OUT/dir && echo ESCAPED && umount $OUT/dir; mount -o bind,ro src src && echo ESCAPED && umount src",
        )
        .harmful_as_root(),
        Attack::program("file handles").harmful_as_root(),
        Attack::program("kernel programs"),
        Attack::program("terminal input"),
        Attack::program("shared memory"),
        Attack::program("file flags"),
        Attack::program("other calling conventions"),
    ]);
}
