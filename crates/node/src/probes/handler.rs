//! The handlers of probes and lifecycle hooks: a command in a container, an HTTP request, a connection, or a gRPC health check.

use crate::net::Network;
use crate::shim::{Exec, Shim};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{
    Container, ExecAction, GRPCAction, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use rustls::pki_types::ServerName;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_rustls::client::TlsStream;
use windlass_clock::Clock;

/// How much of a command's output or of a response is read.
const MAX_READ: u64 = 10 * 1024;

/// A handler.
#[derive(Debug, Clone)]
pub(crate) enum Handler {
    Exec(ExecAction),
    Http(HTTPGetAction),
    Tcp(TCPSocketAction),
    Grpc(GRPCAction),
    Sleep(Duration),
    /// No handler is set.
    Unknown(&'static str),
}

impl Handler {
    pub(crate) fn of_probe(probe: &Probe) -> Self {
        if let Some(action) = &probe.exec {
            Self::Exec(action.clone())
        } else if let Some(action) = &probe.http_get {
            Self::Http(action.clone())
        } else if let Some(action) = &probe.tcp_socket {
            Self::Tcp(action.clone())
        } else if let Some(action) = &probe.grpc {
            Self::Grpc(action.clone())
        } else {
            Self::Unknown("the probe has no handler")
        }
    }

    pub(crate) fn of_hook(hook: &LifecycleHandler) -> Self {
        if let Some(action) = &hook.exec {
            Self::Exec(action.clone())
        } else if let Some(action) = &hook.http_get {
            Self::Http(action.clone())
        } else if let Some(action) = &hook.tcp_socket {
            Self::Tcp(action.clone())
        } else if let Some(action) = &hook.sleep {
            Self::Sleep(Duration::from_secs(u64::try_from(action.seconds).unwrap_or(0)))
        } else {
            Self::Unknown("the hook has no handler")
        }
    }
}

/// The container that a handler addresses.
#[derive(Clone)]
pub(crate) struct ProbeTarget {
    pub(crate) shim: Shim,
    /// `None` for a pod on the host network.
    pub(crate) network: Option<Network>,
    /// The pod's IP.
    pub(crate) address: String,
    pub(crate) container: Container,
    pub(crate) clock: Clock,
}

impl std::fmt::Debug for ProbeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbeTarget").field("container", &self.container.name).finish_non_exhaustive()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl ProbeTarget {
    /// Runs a handler once, with a timeout. An error is in a kubelet's words.
    pub(crate) async fn run(&self, handler: &Handler, limit: Duration) -> Result<(), String> {
        let done = self.clock.timeout(limit, self.unlimited(handler)).await;
        done.unwrap_or_else(|_| {
            let seconds = limit.as_secs();
            Err(match handler {
                Handler::Exec(action) => {
                    format!(
                        "command {:?} timed out after {seconds}s",
                        action.command.clone().unwrap_or_default().join(" ")
                    )
                }
                Handler::Http(_) => {
                    "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned()
                }
                Handler::Grpc(_) => format!("error: health rpc did not complete within {seconds}s"),
                _ => "i/o timeout".to_owned(),
            })
        })
    }

    async fn unlimited(&self, handler: &Handler) -> Result<(), String> {
        match handler {
            Handler::Exec(action) => self.exec(action.command.clone().unwrap_or_default()).await,
            Handler::Http(action) => self.http(action).await,
            Handler::Tcp(action) => {
                let port = self.port(&action.port)?;
                self.connect(action.host.as_deref(), port).await.map(drop)
            }
            Handler::Grpc(action) => {
                let port = self.port(&IntOrString::Int(action.port))?;
                let stream = self.connect(None, port).await?;
                let authority = format!("{}:{port}", self.address);
                super::grpc::check(stream, &authority, action.service.as_deref().unwrap_or_default()).await
            }
            Handler::Sleep(duration) => {
                self.clock.sleep(*duration).await;
                Ok(())
            }
            Handler::Unknown(why) => Err((*why).to_owned()),
        }
    }

    async fn exec(&self, command: Vec<String>) -> Result<(), String> {
        let exec = Exec { command, ..Exec::default() };
        let mut running =
            self.shim.exec(&self.container.name, exec).await.map_err(|error| error.to_string())?;
        let mut said = Vec::new();
        let (stdout, stderr) = (running.stdout.take(), running.stderr.take());
        let read = async {
            let mut errors = Vec::new();
            let out = async {
                if let Some(stdout) = stdout {
                    drain(stdout, &mut said).await;
                }
            };
            let err = async {
                if let Some(stderr) = stderr {
                    drain(stderr, &mut errors).await;
                }
            };
            tokio::join!(out, err);
            said.extend(errors);
            said
        };
        let (said, code) = tokio::join!(read, running.control.wait());
        match code.map_err(|error| error.to_string())? {
            0 => Ok(()),
            code => match String::from_utf8_lossy(&said).trim() {
                "" => Err(format!("command exited with {code}")),
                said => Err(said.to_owned()),
            },
        }
    }

    /// A port by number, or by the name that the container gives it.
    fn port(&self, port: &IntOrString) -> Result<u16, String> {
        let number = match port {
            IntOrString::Int(number) => Some(*number),
            IntOrString::String(name) => {
                let ports = self.container.ports.iter().flatten();
                let named = ports
                    .into_iter()
                    .find(|port| port.name.as_deref() == Some(name))
                    .map(|port| port.container_port);
                named.or_else(|| name.parse().ok())
            }
        };
        let number = number.ok_or_else(|| format!("couldn't find port: {port:?}"))?;
        u16::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| format!("invalid port number: {number}"))
    }

    async fn connect(&self, host: Option<&str>, port: u16) -> Result<Box<dyn Stream>, String> {
        let host = host.filter(|host| !host.is_empty()).unwrap_or(&self.address);
        let failed = |error: &dyn std::fmt::Display| format!("dial tcp {host}:{port}: connect: {error}");
        match &self.network {
            Some(network) => {
                let address: Ipv4Addr =
                    host.parse().map_err(|_| format!("{host:?} is no address in the node's network"))?;
                let stream = network.connect(SocketAddrV4::new(address, port)).await;
                stream.map(|stream| Box::new(stream) as Box<dyn Stream>).map_err(|error| failed(&error))
            }
            None => {
                let address: std::net::IpAddr =
                    host.parse().map_err(|_| format!("{host:?} is no address"))?;
                let stream = tokio::net::TcpStream::connect(SocketAddr::new(address, port)).await;
                stream.map(|stream| Box::new(stream) as Box<dyn Stream>).map_err(|error| failed(&error))
            }
        }
    }

    async fn http(&self, action: &HTTPGetAction) -> Result<(), String> {
        let port = self.port(&action.port)?;
        let host = action.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(&self.address);
        let stream = self.connect(action.host.as_deref(), port).await?;
        let stream: Box<dyn Stream> = match action.scheme.as_deref() {
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => {
                Box::new(secured(stream, host).await.map_err(|error| error.to_string())?)
            }
            _ => stream,
        };
        let path = action.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let mut request = http::Request::get(path);
        let headers = action.http_headers.iter().flatten();
        let said = |name: &str| headers.clone().any(|header| header.name.eq_ignore_ascii_case(name));
        for (name, value) in [
            ("host", format!("{host}:{port}").as_str()),
            ("user-agent", "kube-probe/1.36"),
            ("accept", "*/*"),
        ] {
            if !said(name) {
                request = request.header(name, value);
            }
        }
        for header in headers.clone() {
            request = request.header(&header.name, &header.value);
        }
        let request = request.body(Empty::<bytes::Bytes>::new()).map_err(|error| error.to_string())?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        let asked = async {
            let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
            let status = answer.status().as_u16();
            let mut body = answer.into_body();
            let mut read = 0;
            while let Some(Ok(frame)) = body.frame().await {
                read += frame.data_ref().map_or(0, |data| data.len() as u64);
                if read > MAX_READ {
                    break;
                }
            }
            match status {
                200..400 => Ok(()),
                status => Err(format!("HTTP probe failed with statuscode: {status}")),
            }
        };
        tokio::pin!(asked);
        tokio::select! {
            answer = &mut asked => answer,
            _ = connection => asked.await,
        }
    }
}

/// Reads to the end and keeps the beginning, so that a talkative program is not held up.
async fn drain(mut from: impl AsyncRead + Unpin, into: &mut Vec<u8>) {
    let _ = (&mut from).take(MAX_READ).read_to_end(into).await;
    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
}

/// TLS with whoever answers: a probe asks whether somebody is there, not who.
async fn secured(stream: Box<dyn Stream>, host: &str) -> std::io::Result<TlsStream<Box<dyn Stream>>> {
    let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
    windlass_apiserver::insecure_tls(None)?.connect(name, stream).await
}
