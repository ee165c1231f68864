//! What a line of `sh` cannot try, or not the same everywhere.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The first argument of a probe.
pub(super) const PROBE: &str = "__sandbox-contract";

/// What a command says that somebody came to.
pub(super) const REACHED: &str = "somebody came";

/// Is the suite's probe, if this process was started as one, and says with which code to exit. For the beginning of the
/// `main` of [`Fixture::probe`](super::Fixture::probe).
pub fn run_if_asked() -> Option<i32> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != PROBE {
        return None;
    }
    let (asked, args) = (args.next().unwrap_or_default(), args.collect::<Vec<_>>());
    let said = io::stdout();
    Some(match run(&asked.to_string_lossy(), &args, &mut said.lock()) {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            1
        }
    })
}

fn run(asked: &str, args: &[OsString], say: &mut dyn Write) -> io::Result<()> {
    let word = |at: usize| args.get(at).map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
    let port = || word(0).parse::<u16>().map_err(io::Error::other);
    match asked {
        "environment" => std::env::vars_os().try_for_each(|(name, value)| writeln!(say, "{name:?}={value:?}")),
        "arguments" => {
            writeln!(say, "{:?}", std::env::current_dir()?)?;
            args.iter().try_for_each(|arg| writeln!(say, "{arg:?}"))
        }
        "descriptors" => descriptors()?.iter().try_for_each(|open| writeln!(say, "{open}")),
        "connect" => {
            TcpStream::connect(("127.0.0.1", port()?))?;
            writeln!(say, "connected")
        }
        "send" => {
            UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", ("127.0.0.1", port()?))?;
            Ok(())
        }
        "listen" => listen(Path::new(&word(0)), Path::new(&word(1)), say),
        unknown => Err(io::Error::other(format!("the probe knows no `{unknown}`"))),
    }
}

/// What is open beside the standard streams, and what it is.
fn descriptors() -> io::Result<Vec<String>> {
    let numbers = fs::read_dir("/proc/self/fd")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let numbers: Vec<u32> = numbers.filter(|number| *number > 2).collect();
    // The listing's own is closed by now.
    let open = numbers.into_iter().filter_map(|number| {
        let target = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        Some(format!("{number}: {}", target.display()))
    });
    Ok(open.collect())
}

/// Says where it listens in the one file, until there is the other.
fn listen(said: &Path, until: &Path, say: &mut dyn Write) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let unfinished = said.with_extension("unfinished");
    fs::write(&unfinished, listener.local_addr()?.port().to_string())?;
    fs::rename(&unfinished, said)?;
    while !until.exists() {
        sleep(Duration::from_millis(10));
    }
    match listener.accept() {
        Ok((mut stream, _)) => {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            writeln!(say, "{REACHED}: {text}")
        }
        Err(_) => Ok(()),
    }
}
