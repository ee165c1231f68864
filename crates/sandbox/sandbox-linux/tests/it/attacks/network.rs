//! Reaching others through sockets, with the network denied.

use super::{Attack, hold};

#[test]
fn nobody_is_reached() {
    hold(&[
        Attack::program("unix socket"),
        Attack::program("abstract unix socket"),
        Attack::program("unix datagram from a pair"),
        Attack::program("tcp"),
        Attack::program("udp"),
        Attack::program("name server").harmless_alone(),
        Attack::program("odd families"),
    ]);
}
