//! Whom a command reaches, and who reaches it.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use super::probe::REACHED;
use super::stage::{Stage, sh};
use crate::{Confinement, Mode, Network};

/// Somebody of this machine.
fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a loopback device");
    listener.set_nonblocking(true).expect("a socket can be set so");
    let port = listener.local_addr().expect("it is bound").port().to_string();
    (listener, port)
}

pub(super) fn a_denied_network_reaches_nobody(stage: &Stage) {
    let (tcp, port) = listener();
    let udp = UdpSocket::bind("127.0.0.1:0").expect("this machine has a loopback device");
    udp.set_nonblocking(true).expect("a socket can be set so");
    let udp_port = udp.local_addr().expect("it is bound").port().to_string();
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        for asked in [["connect", &port], ["send", &udp_port]] {
            let said = stage.run(&stage.confinement(mode), &stage.probe(&asked)).output;
            assert!(!said.contains("connected"), "under {mode}, it connected to this machine");
        }
        let nobody = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        assert!(tcp.accept().is_err_and(nobody), "under {mode}, a TCP port of this machine was reached");
        assert!(udp.recv(&mut [0]).is_err_and(nobody), "under {mode}, a UDP port of this machine was reached");
    }
}

pub(super) fn a_denied_network_is_reached_by_nobody(stage: &Stage) {
    let [said, until] = ["port", "until"].map(|name| stage.root.join(name));
    let argv = [sh("$0 $1 listen port until; echo x > over"), stage.probe(&[])].concat();
    let started = stage.start(&stage.confinement(Mode::WorkspaceWrite), &argv, &stage.root, &[]);
    let running = started.unwrap_or_else(|cannot| panic!("what it can hold was refused: {cannot}"));
    // One that may not even listen says so by its end.
    while !said.exists() && !stage.root.join("over").exists() {
        sleep(Duration::from_millis(5));
    }
    if let Ok(port) = fs::read_to_string(&said)
        && let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port.parse::<u16>().expect("the probe says a number")))
    {
        // Who else has that port does not matter.
        let _ = stream.write_all(b"from outside");
    }
    fs::write(&until, "").expect("the suite may write");
    let output = running.end().output;
    assert!(!output.contains(REACHED), "this machine reached the command: {output}");
}

pub(super) fn an_allowed_network_is_there(stage: &Stage) {
    let (tcp, port) = listener();
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let confinement = Confinement { network: Network::Allowed, ..stage.confinement(mode) };
        let said = stage.run(&confinement, &stage.probe(&["connect", &port])).exited(0);
        assert_eq!(said, "connected\n");
        assert!(tcp.accept().is_ok(), "under {mode}, it reached somebody else");
    }
}
