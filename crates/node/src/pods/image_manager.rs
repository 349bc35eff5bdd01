//! Finds the images of a pod's containers. Nothing is pulled: an image is a program or an archive of this machine.
//!
//! Looking one up reads the disk, so it is done on threads that may block.

use super::pod_state::Image;
use super::pod_worker::{PodWorker, container};
use crate::images::{Image as Found, ImageError};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;

/// The initial and the maximum back-off for missing images.
const INITIAL_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(5);
/// The default stop signal.
const SIGTERM: i32 = 15;

impl PodWorker {
    /// Finds the image of a container, or records why there is none.
    pub(super) async fn find_image(&mut self, pod: &Pod, name: &str) {
        let Some(image) = container(pod, name).and_then(|container| container.image.clone()) else { return };
        let now = self.now();
        match self.resolve(&image).await {
            Ok(found) => {
                self.tries.remove(name);
                let message = format!("Container image {image:?} already present on machine");
                self.record_event(pod, false, "Pulled", message);
                self.container_mut(name).image = Image::Found { id: found.id.clone() };
                self.images.insert(name.to_owned(), found);
            }
            Err(why) => {
                let retry_at = self.retry_at(name, INITIAL_BACKOFF, MAX_BACKOFF);
                self.container_mut(name).image =
                    Image::Missing { message: why.to_string(), tried: now, retry_at };
            }
        }
    }

    /// The stop signal of a container: its own, or its image's. After a restart of the kubelet the image is looked up again.
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
            Some(image) => self.resolve(image).await.map_or(SIGTERM, |image| image.stop_signal),
            None => SIGTERM,
        }
    }

    /// On a thread that may block: files are read, and archives are unpacked the first time.
    async fn resolve(&self, image: &str) -> Result<Found, ImageError> {
        let (catalogue, wanted) = (self.context.images.clone(), image.to_owned());
        let found = tokio::task::spawn_blocking(move || catalogue.resolve(&wanted)).await;
        found.unwrap_or_else(|error| {
            Err(ImageError::Broken { image: image.to_owned(), why: error.to_string() })
        })
    }
}
