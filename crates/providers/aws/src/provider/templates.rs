//! Launch templates that exist, as far as we know. One that nobody used for a minute is deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::names::metrics::aws as metrics;
use api::names::tags::aws as tags;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::Inner;
use crate::launch_template::PREFIX;
use crate::port::{Error, Filter, LaunchTemplateQuery, LaunchTemplateRef, NewLaunchTemplate};
use crate::user_data::MOST_BYTES;

/// How long a template stays after it was last used.
const KEPT: Duration = Duration::from_mins(1);
const EXISTS: &str = "InvalidLaunchTemplateName.AlreadyExistsException";

/// From this size on, users are warned: nine tenths of what EC2 accepts.
const NEARLY_FULL: usize = MOST_BYTES * 9 / 10;

/// Launch templates, by name.
#[derive(Debug, Default)]
pub(crate) struct Templates(Mutex<BTreeMap<String, Entry>>);

#[derive(Debug)]
struct Entry {
    /// Its ID, once it is there. Those who need it at the same time wait for one of them to create it.
    id: Arc<OnceCell<String>>,
    used: Instant,
}

impl Templates {
    fn cell(&self, name: &str) -> Arc<OnceCell<String>> {
        let mut all = self.0.lock();
        let now = Instant::now();
        let entry = all.entry(name.to_owned()).or_insert_with(|| Entry { id: Arc::default(), used: now });
        entry.used = now;
        Arc::clone(&entry.id)
    }

    /// Forgets templates that turned out not to exist.
    pub(crate) fn forget<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut all = self.0.lock();
        for name in names {
            all.remove(name);
        }
    }

    /// Names and IDs of templates that nobody used lately; whoever needs one of them now creates it again.
    fn take_unused(&self) -> Vec<(String, String)> {
        let mut all = self.0.lock();
        let now = Instant::now();
        let unused = all.extract_if(.., |_, entry| now.duration_since(entry.used) >= KEPT);
        unused.filter_map(|(name, entry)| Some((name, entry.id.get().cloned()?))).collect()
    }
}

impl Inner {
    /// Makes sure that templates exist, all at the same time. Each is created without looking for it first: its
    /// name follows from what is in it, so that one with the same name will do.
    pub(crate) async fn ensure_templates(&self, templates: &[NewLaunchTemplate]) -> Result<(), Error> {
        let ensured = templates.iter().map(|template| async move {
            let cell = self.templates.cell(&template.name);
            cell.get_or_try_init(|| self.create_template(template)).await.map(|_| ())
        });
        futures::future::try_join_all(ensured).await.map(|_| ())
    }

    async fn create_template(&self, template: &NewLaunchTemplate) -> Result<String, Error> {
        let ec2 = &self.setup.services.ec2;
        let created = self.counted("ec2:CreateLaunchTemplate", ec2.create_launch_template(template)).await;
        match created {
            Ok(created) => {
                self.note_user_data(template);
                Ok(created.id)
            }
            Err(error) if error.code == EXISTS => {
                let query = LaunchTemplateQuery::Name(template.name.clone());
                let found = self.counted("ec2:DescribeLaunchTemplates", ec2.launch_templates(&query)).await?;
                found.into_iter().next().map(|found| found.id).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Shows how large the user data of a NodeClass is, and warns when there is not much room left.
    fn note_user_data(&self, template: &NewLaunchTemplate) {
        let bytes = decoded_length(&template.data.user_data);
        let class = template.tags.get(tags::NODE_CLASS).map_or("", String::as_str);
        #[expect(clippy::cast_precision_loss, reason = "user data has some kilobytes")]
        self.setup.metrics.set(&metrics::USERDATA_BYTES, &[class], bytes as f64);
        if bytes >= NEARLY_FULL {
            tracing::warn!(
                EC2NodeClass = class,
                bytes,
                limit = MOST_BYTES,
                "the user data has nearly the size that EC2 accepts at most"
            );
        }
    }

    /// Takes over the templates that are left of an earlier process, so that they are used or go.
    pub(crate) async fn adopt_templates(&self) -> Result<(), Error> {
        let filter = Filter::tag(tags::CLUSTER_NAME, &self.setup.settings.cluster_name);
        let query = LaunchTemplateQuery::Filters(vec![filter]);
        let ec2 = &self.setup.services.ec2;
        let found = self.counted("ec2:DescribeLaunchTemplates", ec2.launch_templates(&query)).await?;
        // The tag is EKS' own, which others set, too: what is not ours is never deleted.
        for template in found.into_iter().filter(|template| template.name.starts_with(PREFIX)) {
            // One that we created meanwhile is the same.
            drop(self.templates.cell(&template.name).set(template.id));
        }
        Ok(())
    }

    /// Deletes templates that nobody used lately.
    pub(crate) async fn delete_unused_templates(&self) {
        let ec2 = &self.setup.services.ec2;
        for (name, id) in self.templates.take_unused() {
            let template = LaunchTemplateRef::Id(id.clone());
            let deleted =
                self.counted("ec2:DeleteLaunchTemplate", ec2.delete_launch_template(&template)).await;
            if let Err(error) = deleted
                && !error.is_not_found()
            {
                tracing::error!(error = %error, "failed to delete launch template, it is tried again");
                // One that somebody needs again by now is the same.
                drop(self.templates.cell(&name).set(id));
            }
        }
    }
}

/// How many bytes a text in base64 stands for.
fn decoded_length(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    #[test]
    fn the_size_of_user_data_is_that_before_base64() {
        for size in [0, 1, 2, 3, 4, 100, MOST_BYTES] {
            assert_eq!(decoded_length(&BASE64_STANDARD.encode("a".repeat(size))), size);
        }
        assert_eq!(NEARLY_FULL, 14_745);
    }
}
