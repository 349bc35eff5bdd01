//! How many connections to Services each pod may hold: fair shares of what there is. Pure, but for its lock.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The connections that are held, by client.
///
/// A client is given another while it holds fewer than are free. So one that takes all it can get leaves half of them, two leave a
/// third, and whoever comes next always finds some.
#[derive(Debug, Clone)]
pub(super) struct Places(Arc<Mutex<Held>>);

#[derive(Debug)]
struct Held {
    free: usize,
    by_client: HashMap<Ipv4Addr, usize>,
}

impl Places {
    /// So many, all of them free.
    pub(super) fn new(free: usize) -> Self {
        Self(Arc::new(Mutex::new(Held { free, by_client: HashMap::new() })))
    }

    /// One more for this client, if it may have it.
    pub(super) fn take(&self, client: Ipv4Addr) -> Option<Place> {
        let mut all = self.0.lock();
        let held = all.by_client.get(&client).copied().unwrap_or(0);
        if held >= all.free {
            return None;
        }
        all.free -= 1;
        all.by_client.insert(client, held + 1);
        Some(Place { places: self.clone(), client })
    }
}

/// A connection's place, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    client: Ipv4Addr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.places.0.lock();
        all.free += 1;
        if let Some(held) = all.by_client.get_mut(&self.client) {
            *held -= 1;
            if *held == 0 {
                all.by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, number)
    }

    fn all_it_gets(places: &Places, number: u8) -> Vec<Place> {
        std::iter::from_fn(|| places.take(client(number))).collect()
    }

    #[test]
    fn who_takes_all_it_can_get_leaves_some_to_others() {
        let places = Places::new(1000);
        let first = all_it_gets(&places, 1);
        assert_eq!(first.len(), 500);
        let others: Vec<Vec<Place>> = (2..8).map(|number| all_it_gets(&places, number)).collect();
        assert!(others.iter().all(|held| !held.is_empty()));
        drop(first);
        assert!(places.take(client(1)).is_some(), "what was given back is there again");
        drop(others);
        assert!(places.0.lock().by_client.is_empty() && places.0.lock().free == 1000);
    }
}
