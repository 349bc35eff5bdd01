//! Datagrams to a Service. A client's first one chooses an endpoint, and its next ones go there too, until it is silent for a while or
//! the endpoint is gone.

use super::Shared;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use windlass_clock::Moment;

/// How long a client may be silent until it is forgotten.
const SILENCE: Duration = Duration::from_secs(60);
/// How many clients one port of a Service has at once.
const CLIENTS: usize = 2048;
/// The longest datagram there is.
const DATAGRAM: usize = 65535;

type Flows = Arc<Mutex<HashMap<SocketAddr, Flow>>>;

/// What one client says, and to whom.
struct Flow {
    socket: Arc<UdpSocket>,
    backend: SocketAddrV4,
    heard: Arc<Mutex<Moment>>,
}

/// Carries datagrams. Dropping it ends all flows with it.
pub(super) async fn serve(socket: UdpSocket, shared: Arc<Shared>) {
    let socket = Arc::new(socket);
    let flows = Flows::default();
    let mut answering = JoinSet::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        while answering.try_join_next().is_some() {}
        // An error is about an earlier answer that nobody took.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let known = known(&flows, &shared, from);
        let to = match known {
            Some(to) => to,
            None => match begin(&flows, &shared, from).await {
                Some((to, heard)) => {
                    let answers =
                        answer(to.clone(), socket.clone(), from, flows.clone(), shared.clone(), heard);
                    answering.spawn(answers);
                    to
                }
                None => continue,
            },
        };
        _ = to.send(&buffer[..length]).await;
    }
}

/// The flow of this client, if its endpoint is still one.
fn known(flows: &Flows, shared: &Shared, from: SocketAddr) -> Option<Arc<UdpSocket>> {
    let mut flows = flows.lock();
    let flow = flows.get(&from)?;
    if !shared.balancer.lock().has(flow.backend) {
        flows.remove(&from);
        return None;
    }
    *flow.heard.lock() = shared.clock.moment();
    Some(flow.socket.clone())
}

async fn begin(
    flows: &Flows,
    shared: &Shared,
    from: SocketAddr,
) -> Option<(Arc<UdpSocket>, Arc<Mutex<Moment>>)> {
    let SocketAddr::V4(client) = from else { return None };
    if flows.lock().len() >= CLIENTS {
        return None;
    }
    let now = shared.clock.moment();
    let candidates = shared.balancer.lock().candidates(*client.ip(), now);
    // Datagrams are not carried to the host's side.
    let backend = candidates.into_iter().find(|backend| shared.pods.contains(*backend.ip()))?;
    let socket = Arc::new(connected(backend).await.ok()?);
    shared.balancer.lock().keep(*client.ip(), backend, now);
    let heard = Arc::new(Mutex::new(now));
    flows.lock().insert(from, Flow { socket: socket.clone(), backend, heard: heard.clone() });
    Some((socket, heard))
}

async fn connected(backend: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(backend).await?;
    Ok(socket)
}

/// Carries what the endpoint answers, until neither side has said anything for a while or the endpoint refuses.
async fn answer(
    from: Arc<UdpSocket>,
    by: Arc<UdpSocket>,
    client: SocketAddr,
    flows: Flows,
    shared: Arc<Shared>,
    heard: Arc<Mutex<Moment>>,
) {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        match shared.clock.timeout(SILENCE, from.recv(&mut buffer)).await {
            Ok(Ok(length)) => {
                *heard.lock() = shared.clock.moment();
                _ = by.send_to(&buffer[..length], client).await;
            }
            Err(_) if shared.clock.moment() - *heard.lock() < SILENCE => {}
            // Nobody listens there, or nothing was said for a while.
            Ok(Err(_)) | Err(_) => break,
        }
    }
    let mut flows = flows.lock();
    if flows.get(&client).is_some_and(|flow| Arc::ptr_eq(&flow.socket, &from)) {
        flows.remove(&client);
    }
}
