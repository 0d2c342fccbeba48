//! The latest images of NodeClasses, asked for seldom: they change every few days.

use std::collections::BTreeMap;
use std::time::Duration;

use api::azure::{AKSNodeClass, NodeImage};
use futures::future::try_join_all;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Inner;
use crate::arm::Error;
use crate::class::Class;
use crate::images::{Definition, community_image, definitions, shared_images};

/// How long images that were found are kept.
const KEPT: Duration = Duration::from_hours(72);

/// The names of definitions and the version of Kubernetes.
type Question = (Vec<&'static str>, String);

/// Images that were found.
#[derive(Debug, Default)]
pub(crate) struct Images(Mutex<BTreeMap<Question, (Instant, Vec<NodeImage>)>>);

impl Inner {
    /// The latest images that machines of a NodeClass can start, the preferred one first.
    pub(crate) async fn latest_images(&self, class: &AKSNodeClass) -> Result<Vec<NodeImage>, Error> {
        let class = Class::from(class);
        let definitions = definitions(&class, self.setup.settings.use_sig);
        if definitions.is_empty() {
            return Ok(Vec::new());
        }
        let names = definitions.iter().map(|definition| definition.name).collect();
        let question = (names, class.kubernetes_version.to_owned());
        let now = Instant::now();
        let known = self.images.0.lock().get(&question).filter(|(until, _)| *until > now).cloned();
        if let Some((_, images)) = known {
            return Ok(images);
        }
        let images = self.ask_for_images(definitions).await?;
        let mut all = self.images.0.lock();
        all.retain(|_, (until, _)| *until > now);
        // That there is none may change at any time.
        if !images.is_empty() {
            all.insert(question, (now + KEPT, images.clone()));
        }
        Ok(images)
    }

    async fn ask_for_images(&self, definitions: &[Definition]) -> Result<Vec<NodeImage>, Error> {
        let (client, location) = (&self.setup.client, &self.setup.settings.location);
        if self.setup.settings.use_sig {
            let listed = client.node_image_versions(location).await?;
            return Ok(shared_images(definitions, &self.setup.settings.sig_subscription_id, &listed));
        }
        let found = definitions.iter().map(|definition| async move {
            let gallery = definition.gallery.community;
            let versions = client.community_image_versions(location, gallery, definition.name).await?;
            Ok::<_, Error>(community_image(definition, &versions))
        });
        Ok(try_join_all(found).await?.into_iter().flatten().collect())
    }
}
