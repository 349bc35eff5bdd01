//! A pod: namespaces of its own, joined to the network, then one request for each line of its standard input.

use anyhow::{Context, Result, ensure};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Connections that stay open.
static KEPT: parking_lot::Mutex<Vec<TcpStream>> = parking_lot::Mutex::new(Vec::new());

const LIMIT: Duration = Duration::from_secs(10);

pub fn main(arguments: &[OsString]) -> ExitCode {
    let said = |answer: Result<String>| match answer {
        Ok(text) => println!("{}", json!({"ok": text})),
        Err(error) => println!("{}", json!({"error": format!("{error:#}")})),
    };
    let joined = begin(arguments);
    let ready = joined.is_ok();
    said(joined);
    if !ready {
        return ExitCode::FAILURE;
    }
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { break };
        said(serde_json::from_str(&line).map_err(anyhow::Error::from).and_then(carry_out));
    }
    ExitCode::SUCCESS
}

fn begin(arguments: &[OsString]) -> Result<String> {
    let [users, uid, socket, resolv_conf] = arguments else {
        anyhow::bail!("pod USERS UID SOCKET RESOLV.CONF")
    };
    let users = users.to_str().context("a pid")?;
    if users != "0" {
        setns(File::open(format!("/proc/{users}/ns/user"))?, CloneFlags::CLONE_NEWUSER)
            .context("join the users")?;
    }
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).context("leave the network")?;
    show_resolv_conf(resolv_conf.to_str().context("text")?).context("show resolv.conf")?;
    Ok(windlass_node::net::join(Path::new(socket), uid.to_str().context("a uid")?)?.wait()?.to_string())
}

/// So that the system's own resolver asks the cluster.
fn show_resolv_conf(text: &str) -> Result<()> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(text.as_bytes())?;
    mount(Some(file.path()), "/etc/resolv.conf", none, MsFlags::MS_BIND, none)?;
    Ok(())
}

fn carry_out(request: Value) -> Result<String> {
    let text = |field: &str| request[field].as_str().unwrap_or_default().to_owned();
    match text("do").as_str() {
        // Says its name to whoever connects, once they have said all they want to; what they said comes behind it.
        "listen" => {
            let (name, listener) = (text("name"), TcpListener::bind(("0.0.0.0", port(&request)?))?);
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let name = name.clone();
                    std::thread::spawn(move || greet(stream, &name));
                }
            });
            Ok("listens".into())
        }
        "listen-udp" => {
            let (name, socket) = (text("name"), UdpSocket::bind(("0.0.0.0", port(&request)?))?);
            std::thread::spawn(move || {
                let mut buffer = [0; 2048];
                while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    let answer = [name.as_bytes(), b" ", &buffer[..length]].concat();
                    _ = socket.send_to(&answer, from);
                }
            });
            Ok("listens".into())
        }
        "resolve" => {
            let mut all: Vec<_> =
                (text("name").as_str(), 0).to_socket_addrs()?.map(|found| found.ip().to_string()).collect();
            all.sort();
            all.dedup();
            Ok(all.join(" "))
        }
        // A connection that stays open: said to again and again, by its number.
        "open" => {
            let mut kept = KEPT.lock();
            kept.push(connect(&text("to"))?);
            Ok((kept.len() - 1).to_string())
        }
        "echo" => {
            let mut kept = KEPT.lock();
            let stream = kept.get_mut(text("at").parse::<usize>()?).context("opened before")?;
            let said = text("text");
            stream.write_all(said.as_bytes())?;
            let mut heard = vec![0; said.len()];
            stream.read_exact(&mut heard)?;
            Ok(String::from_utf8(heard)?)
        }
        // Gives back what it hears at once.
        "listen-echo" => {
            let listener = TcpListener::bind(("0.0.0.0", port(&request)?))?;
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    _ = stream.set_nodelay(true);
                    std::thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
                }
            });
            Ok("listens".into())
        }
        "flood" => flood(&text("to"), request["bytes"].as_u64().context("bytes")?),
        "round-trips" => crate::latency::round_trips(connect(&text("to"))?),
        "connections" => crate::latency::connections(|| connect(&text("to"))),
        "say" => say(&text("to"), &text("text")),
        "say-udp" => say_udp(&text("to"), &text("text")),
        "read" => Ok(std::fs::read_to_string(text("file"))?),
        other => anyhow::bail!("cannot {other}"),
    }
}

fn port(request: &Value) -> Result<u16> {
    Ok(u16::try_from(request["port"].as_u64().context("a port")?)?)
}

fn greet(mut stream: TcpStream, name: &str) -> Result<()> {
    let from = stream.peer_addr()?.ip();
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    write!(stream, "{name} heard {said} from {from}")?;
    Ok(())
}

fn connect(to: &str) -> Result<TcpStream> {
    let address = to.to_socket_addrs()?.next().context("an address")?;
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends so many bytes to one that echoes, and sees that all of them come back, in order.
fn flood(to: &str, bytes: u64) -> Result<String> {
    let stream = connect(to)?;
    let mut writer = stream.try_clone()?;
    let sending = std::thread::spawn(move || -> Result<()> {
        let (mut pattern, mut left) = (pattern(), bytes);
        while left > 0 {
            let chunk: Vec<u8> = pattern.by_ref().take(usize::try_from(left.min(8192))?).collect();
            writer.write_all(&chunk)?;
            left -= chunk.len() as u64;
        }
        Ok(writer.shutdown(std::net::Shutdown::Write)?)
    });
    let mut heard = 0;
    for (byte, expected) in std::io::BufReader::new(&stream).bytes().zip(pattern()) {
        ensure!(byte? == expected, "another byte at {heard}");
        heard += 1;
    }
    sending.join().expect("the thread does not panic")?;
    ensure!(heard == bytes, "{heard} of {bytes} came back");
    Ok("all".into())
}

/// Bytes that do not repeat where buffers do.
fn pattern() -> impl Iterator<Item = u8> {
    (0u32..).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
}

fn say(to: &str, text: &str) -> Result<String> {
    let mut stream = connect(to)?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut heard = String::new();
    stream.read_to_string(&mut heard)?;
    Ok(heard)
}

fn say_udp(to: &str, text: &str) -> Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(LIMIT))?;
    socket.connect(to)?;
    socket.send(text.as_bytes())?;
    let mut buffer = [0; 4096];
    let length = socket.recv(&mut buffer)?;
    ensure!(length > 0, "an empty answer");
    Ok(String::from_utf8(buffer[..length].to_vec())?)
}
