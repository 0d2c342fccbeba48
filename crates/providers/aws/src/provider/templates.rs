//! Launch templates that exist, as far as we know. One that nobody used for a minute is deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::names::tags::aws as tags;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::Inner;
use crate::port::{Error, Filter, LaunchTemplateQuery, LaunchTemplateRef, NewLaunchTemplate};

/// How long a template stays after it was last used.
const KEPT: Duration = Duration::from_mins(1);
const EXISTS: &str = "InvalidLaunchTemplateName.AlreadyExistsException";

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

    fn take_unused(&self) -> Vec<String> {
        let mut all = self.0.lock();
        let now = Instant::now();
        let unused = all.extract_if(.., |_, entry| now.duration_since(entry.used) >= KEPT);
        unused.filter_map(|(_, entry)| entry.id.get().cloned()).collect()
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
            Ok(created) => Ok(created.id),
            Err(error) if error.code == EXISTS => {
                let query = LaunchTemplateQuery::Name(template.name.clone());
                let found = self.counted("ec2:DescribeLaunchTemplates", ec2.launch_templates(&query)).await?;
                found.into_iter().next().map(|found| found.id).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes over the templates that are left of an earlier process, so that they are used or go.
    pub(crate) async fn adopt_templates(&self) -> Result<(), Error> {
        let filter = Filter::tag(tags::CLUSTER_NAME, &self.setup.settings.cluster_name);
        let query = LaunchTemplateQuery::Filters(vec![filter]);
        let ec2 = &self.setup.services.ec2;
        let found = self.counted("ec2:DescribeLaunchTemplates", ec2.launch_templates(&query)).await?;
        for template in found {
            // One that we created meanwhile is the same.
            drop(self.templates.cell(&template.name).set(template.id));
        }
        Ok(())
    }

    /// Deletes templates that nobody used lately.
    pub(crate) async fn delete_unused_templates(&self) {
        let ec2 = &self.setup.services.ec2;
        for id in self.templates.take_unused() {
            let template = LaunchTemplateRef::Id(id);
            let deleted =
                self.counted("ec2:DeleteLaunchTemplate", ec2.delete_launch_template(&template)).await;
            if let Err(error) = deleted
                && !error.is_not_found()
            {
                // The next process that leads finds it by its tag.
                tracing::error!(error = %error, "failed to delete launch template");
            }
        }
    }
}
