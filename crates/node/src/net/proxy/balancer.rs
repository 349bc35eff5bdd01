//! Which endpoint a client gets: pure. In turn, unless it had one before and is to keep it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use windlass_clock::Moment;

/// How many endpoints are tried for one connection.
const TRIED: usize = 3;
/// How many clients are remembered for one port.
const REMEMBERED: usize = 16 << 10;

/// The endpoints of one port, and who had which.
#[derive(Debug, Default)]
pub(super) struct Balancer {
    backends: Vec<SocketAddrV4>,
    affinity: Option<Duration>,
    next: usize,
    kept: HashMap<Ipv4Addr, (SocketAddrV4, Moment)>,
}

impl Balancer {
    /// These are the endpoints now. Who had one that is left keeps it.
    pub(super) fn replace(&mut self, backends: Vec<SocketAddrV4>, affinity: Option<Duration>) {
        if affinity.is_none() {
            self.kept.clear();
        }
        self.kept.retain(|_, (kept, _)| backends.contains(kept));
        self.backends = backends;
        self.affinity = affinity;
    }

    /// Whether this is one of the endpoints.
    pub(super) fn has(&self, backend: SocketAddrV4) -> bool {
        self.backends.contains(&backend)
    }

    /// Which endpoints to try for this client, in this order.
    pub(super) fn candidates(&mut self, client: Ipv4Addr, now: Moment) -> Vec<SocketAddrV4> {
        let kept = self.affinity.zip(self.kept.get(&client));
        let kept = kept.and_then(|(limit, (kept, since))| (now - *since < limit).then_some(*kept));
        let count = self.backends.len();
        let in_turn = (0..count).map(|step| self.backends[(self.next + step) % count]);
        let all = kept.into_iter().chain(in_turn.filter(|backend| Some(*backend) != kept));
        let tried = all.take(TRIED).collect();
        if kept.is_none() {
            self.next = self.next.wrapping_add(1) % count.max(1);
        }
        tried
    }

    /// The client got this one.
    pub(super) fn keep(&mut self, client: Ipv4Addr, backend: SocketAddrV4, now: Moment) {
        let Some(limit) = self.affinity else { return };
        if self.kept.len() >= REMEMBERED && !self.kept.contains_key(&client) {
            self.kept.retain(|_, (_, since)| now - *since < limit);
            if self.kept.len() >= REMEMBERED {
                return;
            }
        }
        self.kept.insert(client, (backend, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_clock::Clock;

    fn backend(last: u8) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 244, 0, last), 80)
    }

    const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 100);

    #[test]
    fn endpoints_are_taken_in_turn() {
        let mut balancer = Balancer::default();
        let now = Clock::real().moment();
        assert!(balancer.candidates(CLIENT, now).is_empty());
        balancer.replace(vec![backend(1), backend(2)], None);
        let first: Vec<_> = (0..4).map(|_| balancer.candidates(CLIENT, now)[0]).collect();
        assert_eq!(first, [backend(1), backend(2), backend(1), backend(2)]);
        assert_eq!(balancer.candidates(CLIENT, now), [backend(1), backend(2)], "another where one fails");
        balancer.replace(vec![backend(3)], None);
        assert_eq!(balancer.candidates(CLIENT, now), [backend(3)]);
    }

    #[test]
    fn a_client_keeps_its_endpoint_while_it_is_there_and_for_so_long() {
        let (clock, driver) = Clock::driven("2026-01-01T00:00:00Z".parse().unwrap());
        let mut balancer = Balancer::default();
        balancer.replace(vec![backend(1), backend(2)], Some(Duration::from_secs(10)));
        let first = |balancer: &mut Balancer| {
            let first = balancer.candidates(CLIENT, clock.moment())[0];
            balancer.keep(CLIENT, first, clock.moment());
            first
        };
        assert_eq!([first(&mut balancer), first(&mut balancer)], [backend(1), backend(1)]);
        driver.advance(Duration::from_secs(9));
        assert_eq!(first(&mut balancer), backend(1), "every use counts anew");
        driver.advance(Duration::from_secs(9));
        assert_eq!(first(&mut balancer), backend(1));
        balancer.replace(vec![backend(2), backend(3)], Some(Duration::from_secs(10)));
        let other = first(&mut balancer);
        assert_ne!(other, backend(1));
        driver.advance(Duration::from_secs(11));
        assert_ne!(first(&mut balancer), other, "forgotten");
    }
}
