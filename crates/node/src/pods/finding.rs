//! What stands for the images of a pod's containers.

use super::known::Image;
use super::worker::{Worker, container};
use crate::images::{Image as Found, Unknown};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;

/// An image that is not there is looked for again after so long, then ever later.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(5);
/// What asks a program to end, where nobody says otherwise.
const TERM: i32 = 15;

impl Worker {
    /// Finds the image of a container, or notes why there is none.
    pub(super) async fn find(&mut self, pod: &Pod, name: &str) {
        let Some(image) = container(pod, name).and_then(|container| container.image.clone()) else { return };
        let now = self.now();
        match self.resolve(&image).await {
            Ok(found) => {
                self.tries.remove(name);
                let message = format!("Container image {image:?} already present on machine");
                self.tell_pod(pod, false, "Pulled", message);
                self.run_of(name).image = Image::Found { id: found.id.clone() };
                self.images.insert(name.to_owned(), found);
            }
            Err(why) => {
                let again = self.again(name, FIRST, LONGEST);
                self.run_of(name).image = Image::Missing { message: why.to_string(), tried: now, again };
            }
        }
    }

    /// The signal that asks a container to end: its own, or its image's. A node that came back looks at the image again.
    pub(super) async fn stop_signal(&self, pod: &Pod, name: &str) -> i32 {
        let container = container(pod, name);
        let own = container.as_ref().and_then(|container| container.lifecycle.as_ref()?.stop_signal.clone());
        if let Some(signal) = own.and_then(|own| own.parse::<nix::sys::signal::Signal>().ok()) {
            return signal as i32;
        }
        if let Some(image) = self.images.get(name) {
            return image.stop_signal;
        }
        match container.as_ref().and_then(|container| container.image.as_deref()) {
            Some(image) => self.resolve(image).await.map_or(TERM, |image| image.stop_signal),
            None => TERM,
        }
    }

    /// Apart from all that must not wait: files are read, and the first time archives are unpacked.
    async fn resolve(&self, image: &str) -> Result<Found, Unknown> {
        let (catalogue, wanted) = (self.site.images.clone(), image.to_owned());
        let found = tokio::task::spawn_blocking(move || catalogue.resolve(&wanted)).await;
        found.unwrap_or_else(|error| Err(Unknown::Broken { image: image.to_owned(), why: error.to_string() }))
    }
}
