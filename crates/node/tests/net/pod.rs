//! A pod: namespaces of its own, joined to the network, then one request for each line of its standard input.

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, setns, unshare};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

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
    let [users, uid, socket] = arguments else { anyhow::bail!("pod USERS UID SOCKET") };
    let users = users.to_str().context("a pid")?;
    if users != "0" {
        setns(File::open(format!("/proc/{users}/ns/user"))?, CloneFlags::CLONE_NEWUSER)
            .context("join the users")?;
    }
    unshare(CloneFlags::CLONE_NEWNET).context("leave the network")?;
    Ok(windlass_node::net::join(Path::new(socket), uid.to_str().context("a uid")?)?.to_string())
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

fn say(to: &str, text: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&to.parse()?, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
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
