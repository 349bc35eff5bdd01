//! Answers what nodes and shims ask of the network process.

use super::ipam::Ipam;
use super::links::Links;
use crate::net::dns::{Dns, Names};
use crate::net::protocol::{Hello, Reply, Request, read, write};
use crate::net::proxy::{self, Proxy};
use crate::net::{ServiceMap, Settings};
use crate::stderr_log::log;
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use windlass_clock::Clock;

/// How long a connection that was asked for may take: all there is lies on this machine.
const CONNECTING: Duration = Duration::from_secs(10);
/// How often it is looked whether the network's folder is still there.
const LOOKING: Duration = Duration::from_secs(5);
/// How long a pod's interface may take to carry packets; a few milliseconds.
const RUNNING: Duration = Duration::from_secs(3);
/// How long whoever connects may take to say what they want.
const ASKING: Duration = Duration::from_secs(30);

/// Everything the process answers with.
pub(super) struct Control {
    hello: Hello,
    state: Mutex<State>,
    dns: Arc<Dns>,
    proxy: Proxy,
    end: Notify,
    clock: Clock,
}

struct State {
    links: Links,
    addresses: Ipam,
}

impl Control {
    /// Takes up what an earlier process lent, and begins to answer for names.
    pub(super) async fn open(hello: Hello, links: Links) -> io::Result<Arc<Self>> {
        let range = hello.settings.pods;
        let written = fs::read(hello.settings.folder.join("addresses.json"));
        let recovered = written.ok().and_then(|text| Ipam::recovered(&text, range));
        let addresses = recovered.unwrap_or_else(|| Ipam::new(range));
        Ok(Arc::new(Self {
            dns: Dns::serve(&hello.settings).await?,
            proxy: Proxy::new(&hello.settings),
            state: Mutex::new(State { links, addresses }),
            end: Notify::new(),
            clock: Clock::real(),
            hello,
        }))
    }

    /// Answers until it is told to end.
    pub(super) async fn serve(self: Arc<Self>, listener: UnixListener) {
        let mut terminated = match signal(SignalKind::terminate()) {
            Ok(signal) => signal,
            Err(error) => return log(format!("cannot wait for signals: {error}")),
        };
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let control = self.clone();
                        tokio::spawn(async move { control.answer(stream).await });
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: others will be closed.
                        log(format!("cannot take a request: {error}"));
                        self.clock.sleep(Duration::from_millis(50)).await;
                    }
                },
                () = self.clock.sleep(LOOKING) => {
                    if !self.still_found() {
                        return log("the network's folder is gone, and so is whoever could ask");
                    }
                }
                () = self.end.notified() => return,
                _ = terminated.recv() => return,
            }
        }
    }

    /// Whether anybody can reach this process: one whose folder was removed would stay for ever.
    fn still_found(&self) -> bool {
        fs::symlink_metadata(self.settings().socket()).is_ok()
    }

    async fn answer(&self, stream: UnixStream) {
        let asked = match self.clock.timeout(ASKING, read::<Request>(&stream)).await {
            Ok(Ok(Some(asked))) => asked,
            Ok(Err(error)) => return log(format!("a request is not understood: {error}")),
            Ok(Ok(None)) | Err(_) => return,
        };
        let ends = asked.0 == Request::End;
        let (reply, descriptor) = match asked {
            (Request::Connect { to }, _) => self.connect(to).await,
            (Request::Await { uid }, _) => (self.running(&uid).await.unwrap_or_else(Reply::Refused), None),
            (Request::Publish { table }, _) => {
                self.publish(table).await;
                (Reply::Done, None)
            }
            (request, descriptor) => {
                (self.carry_out(request, descriptor).unwrap_or_else(Reply::Refused), None)
            }
        };
        let descriptor = descriptor.as_ref().map(AsFd::as_fd);
        // Who asked may be gone: what was done is done, and asking again finds it so.
        _ = write(&stream, &reply, descriptor).await;
        if ends {
            self.end.notify_one();
        }
    }

    async fn connect(&self, to: SocketAddrV4) -> (Reply, Option<TcpStream>) {
        match self.clock.timeout(CONNECTING, TcpStream::connect(to)).await {
            Ok(Ok(stream)) => (Reply::Done, Some(stream)),
            Ok(Err(error)) => (Reply::NotConnected(error.raw_os_error()), None),
            Err(_) => (Reply::NotConnected(None), None),
        }
    }

    /// Waits until packets of the pod arrive. One that never does is not held up for ever: its own probes will tell.
    async fn running(&self, uid: &str) -> Result<Reply, String> {
        let due = self.clock.moment() + RUNNING;
        loop {
            let seen = {
                let mut state = self.state.lock();
                let address = state.addresses.of(uid).ok_or("the pod was lent no address")?;
                state
                    .links
                    .is_running(address)
                    .map_err(|error| format!("the pod's interface is gone: {error}"))?
            };
            if seen || self.clock.moment() >= due {
                return Ok(Reply::Done);
            }
            self.clock.sleep(Duration::from_millis(1)).await;
        }
    }

    /// Services first: who hears a name must find somebody there.
    async fn publish(&self, table: ServiceMap) {
        for address in proxy::outside(&table, self.settings()) {
            if let Err(error) = self.state.lock().links.own(address) {
                log(format!("cannot make {address} this network's own: {error}"));
            }
        }
        for wrong in self.proxy.replace(&table).await {
            log(wrong);
        }
        self.dns.know(Names::new(self.settings(), table));
    }

    fn settings(&self) -> &Settings {
        &self.hello.settings
    }

    fn carry_out(&self, request: Request, descriptor: Option<OwnedFd>) -> Result<Reply, String> {
        let mut state = self.state.lock();
        let state = &mut *state;
        Ok(match request {
            Request::Hello => Reply::Hello(self.hello.clone()),
            Request::Allocate { uid } => {
                let known = state.addresses.of(&uid).is_some();
                let address = state
                    .addresses
                    .allocate(&uid)
                    .ok_or_else(|| format!("all addresses of {} are taken", self.hello.settings.pods))?;
                if !known {
                    self.write_down(&state.addresses);
                }
                Reply::Address(address)
            }
            Request::Release { uid } => {
                if let Some(address) = state.addresses.of(&uid) {
                    state
                        .links
                        .remove(address)
                        .map_err(|error| format!("cannot remove the pod's interface: {error}"))?;
                    state.addresses.release(&uid);
                    self.write_down(&state.addresses);
                }
                Reply::Done
            }
            Request::Join { uid } => {
                let namespace = descriptor.ok_or("the pod's namespace did not come along")?;
                let address = state.addresses.of(&uid).ok_or("the pod was lent no address")?;
                let joined = state.links.add(address, namespace.as_fd());
                Reply::Joined(joined.map_err(|error| format!("cannot make the pod's interface: {error}"))?)
            }
            Request::ListAllocated => Reply::Allocated(state.addresses.all()),
            Request::Await { .. } | Request::Publish { .. } | Request::Connect { .. } | Request::End => {
                Reply::Done
            }
        })
    }

    /// For a process that comes after this one. Losing it costs pods that outlive both their address, no more.
    fn write_down(&self, addresses: &Ipam) {
        let folder = &self.hello.settings.folder;
        let (new, file) = (folder.join("addresses.json.new"), folder.join("addresses.json"));
        let written = serde_json::to_vec(addresses)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&new, text))
            .and_then(|()| fs::rename(&new, &file));
        if let Err(error) = written {
            log(format!("cannot write down who holds which address: {error}"));
        }
    }
}
