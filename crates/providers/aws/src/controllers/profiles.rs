//! Instance profiles: those that we make for roles, what is remembered of them, and those that nobody needs any
//! more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::aws::EC2NodeClass;
use api::names::annotations::aws::INSTANCE_PROFILE_NAME;
use cluster::state::{Kind, State};
use parking_lot::Mutex;
use runtime::Again;
use runtime::controller::Outcome;
use tokio::time::Instant;

use super::failed;
use crate::instance_profile::{cluster_path, is_valid_name, legacy_name, new_name, path};
use crate::port::{Error, InstanceProfile, Tags};
use crate::provider::Inner;

/// How long the role of a profile is remembered.
const ROLES_KEPT: Duration = Duration::from_mins(15);
/// How long a role that does not exist is not asked for again.
const MISSING_KEPT: Duration = Duration::from_mins(1);
/// How long a profile stays that a launch under way may use.
const PROTECTED: Duration = Duration::from_hours(1);
/// How often profiles are collected.
const COLLECTED: Again = Again::After(Duration::from_mins(30));

/// Something that is remembered for a while, by name.
#[derive(Debug)]
struct Remembered<T>(BTreeMap<String, (Instant, T)>);

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Clone> Remembered<T> {
    fn get(&self, name: &str) -> Option<T> {
        let (until, value) = self.0.get(name)?;
        (*until > Instant::now()).then(|| value.clone())
    }

    fn insert(&mut self, name: &str, value: T, kept: Duration) {
        let now = Instant::now();
        self.0.retain(|_, (until, _)| *until > now);
        self.0.insert(name.to_owned(), (now + kept, value));
    }
}

#[derive(Debug, Default)]
struct Memory {
    roles: Remembered<Vec<String>>,
    missing: Remembered<Error>,
    protected: Remembered<()>,
}

/// What is remembered of instance profiles.
#[derive(Debug, Default)]
pub(super) struct Profiles(Mutex<Memory>);

impl Profiles {
    /// Keeps a profile that instances may still be launched with.
    pub(super) fn protect(&self, name: &str) {
        if !name.is_empty() {
            self.0.lock().protected.insert(name, (), PROTECTED);
        }
    }

    fn protected(&self) -> Vec<String> {
        let now = Instant::now();
        let memory = self.0.lock();
        let protected = memory.protected.0.iter().filter(|(_, (until, ()))| *until > now);
        protected.map(|(name, _)| name.clone()).collect()
    }

    /// The roles of a profile, if it is there.
    async fn roles(&self, inner: &Inner, name: &str) -> Result<Option<Vec<String>>, Error> {
        let known = self.0.lock().roles.get(name);
        if known.is_some() {
            return Ok(known);
        }
        self.ask_roles(inner, name).await
    }

    async fn ask_roles(&self, inner: &Inner, name: &str) -> Result<Option<Vec<String>>, Error> {
        let iam = &inner.setup.services.iam;
        match inner.counted("iam:GetInstanceProfile", iam.instance_profile(name)).await {
            Ok(profile) => {
                self.0.lock().roles.insert(name, profile.roles.clone(), ROLES_KEPT);
                Ok(Some(profile.roles))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The name of a profile of a class that has a role: the known one, or one that is made.
    pub(super) async fn with_role(
        &self,
        inner: &Inner,
        object: &EC2NodeClass,
        role: &str,
        tags: &Tags,
    ) -> Result<String, Error> {
        let known = object.status.as_ref().map_or("", |status| &status.instance_profile);
        if !known.is_empty()
            && self.roles(inner, known).await?.is_some_and(|roles| roles.iter().any(|each| each == role))
        {
            return Ok(known.to_owned());
        }
        let missing = self.0.lock().missing.get(role);
        if let Some(error) = missing {
            return Err(error);
        }
        let (cluster, region) = (&inner.setup.settings.cluster_name, &inner.setup.region);
        let class = object.metadata.name.as_deref().unwrap_or_default();
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        // The same class and role give the same name: a second try finds what the first one made.
        let name = new_name(cluster, region, class, &format!("{uid}{role}"));
        self.protect(&name);
        let is_made =
            self.0.lock().roles.get(&name).is_some_and(|roles| roles.iter().any(|each| each == role));
        if is_made {
            // It is not in the status yet.
            return Ok(name);
        }
        match self.make(inner, &name, &path(region, cluster, uid), role, tags).await {
            Ok(()) => {
                self.0.lock().roles.insert(&name, vec![role.to_owned()], ROLES_KEPT);
                self.protect(known);
                Ok(name)
            }
            Err(error) => {
                if error.is_role_not_found() {
                    self.0.lock().missing.insert(role, error.clone(), MISSING_KEPT);
                }
                Err(error)
            }
        }
    }

    async fn make(
        &self,
        inner: &Inner,
        name: &str,
        path: &str,
        role: &str,
        tags: &Tags,
    ) -> Result<(), Error> {
        let iam = &inner.setup.services.iam;
        let created = iam.create_instance_profile(name, path, tags);
        let created = inner.counted("iam:CreateInstanceProfile", created).await;
        let is_new = created.is_ok();
        match created {
            Err(error) if error.is_already_exists() => {
                for other in self.ask_roles(inner, name).await?.unwrap_or_default() {
                    if other == role {
                        return Ok(());
                    }
                    // Somebody else changed it; a profile has one role only.
                    inner.counted("iam:RemoveRoleFromInstanceProfile", iam.remove_role(name, &other)).await?;
                }
            }
            created => created?,
        }
        let added = inner.counted("iam:AddRoleToInstanceProfile", iam.add_role(name, role)).await;
        if added.is_err() && is_new {
            // Nothing is left behind of what did not work.
            drop(self.delete(inner, name).await);
        }
        added
    }

    /// Deletes an instance profile, if it is there.
    async fn delete(&self, inner: &Inner, name: &str) -> Result<(), Error> {
        let iam = &inner.setup.services.iam;
        let Some(roles) = self.ask_roles(inner, name).await? else { return Ok(()) };
        for role in &roles {
            inner.counted("iam:RemoveRoleFromInstanceProfile", iam.remove_role(name, role)).await?;
        }
        match inner.counted("iam:DeleteInstanceProfile", iam.delete_instance_profile(name)).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        let mut memory = self.0.lock();
        memory.roles.0.remove(name);
        memory.protected.0.remove(name);
        Ok(())
    }

    /// Deletes everything that was made for a class.
    pub(super) async fn delete_all(&self, inner: &Inner, object: &EC2NodeClass) -> Result<(), Error> {
        if inner.setup.settings.isolated_vpc {
            return Ok(());
        }
        let (cluster, region) = (&inner.setup.settings.cluster_name, &inner.setup.region);
        let path = path(region, cluster, object.metadata.uid.as_deref().unwrap_or_default());
        for profile in list(inner, &path).await? {
            self.delete(inner, &profile.name).await?;
        }
        let legacy = legacy_name(cluster, region, object.metadata.name.as_deref().unwrap_or_default());
        if is_valid_name(&legacy) {
            self.delete(inner, &legacy).await?;
        }
        Ok(())
    }

    /// Deletes the profiles of this cluster that nothing uses. A failure ends it, and it is tried again.
    pub(super) async fn collect(&self, inner: &Inner) -> Outcome {
        let path = cluster_path(&inner.setup.region, &inner.setup.settings.cluster_name);
        let found = list(inner, &path).await.map_err(failed)?;
        // What is in use is looked at last: one that was made meanwhile is protected.
        let Some(mut used) = used(&inner.setup.cluster.read()) else { return Ok(COLLECTED) };
        used.extend(self.protected());
        for profile in found.iter().filter(|profile| !used.contains(&profile.name)) {
            self.delete(inner, &profile.name).await.map_err(failed)?;
            tracing::info!("instance-profile" = profile.name, "garbage collected instance profile");
        }
        Ok(COLLECTED)
    }
}

/// The profiles below a path. Not every IAM filters them.
async fn list(inner: &Inner, path: &str) -> Result<Vec<InstanceProfile>, Error> {
    let iam = &inner.setup.services.iam;
    let mut found = inner.counted("iam:ListInstanceProfiles", iam.instance_profiles(path)).await?;
    found.retain(|profile| profile.path.starts_with(path));
    Ok(found)
}

/// The profiles that NodeClasses and instances use; nothing if not all of them are known for certain.
fn used(state: &State) -> Option<BTreeSet<String>> {
    if state.doubt(&[Kind::NodeClass, Kind::NodeClaim]).is_some() {
        return None;
    }
    let classes = state.node_classes.values().filter_map(|class| {
        class.status.found.get("instanceProfile").and_then(|name| name.as_str()).map(str::to_owned)
    });
    let claims = state.node_claims.values().filter_map(|claim| {
        claim.metadata.annotations.as_ref().and_then(|all| all.get(INSTANCE_PROFILE_NAME)).cloned()
    });
    Some(classes.chain(claims).collect())
}
