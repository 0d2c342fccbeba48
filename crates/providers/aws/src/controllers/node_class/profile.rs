//! The instance profile of a NodeClass: the user's own, or one that we make for a role.

use api::aws::EC2NodeClass;
use api::names::reasons::aws as reasons;

use super::decide::Step;
use crate::instance_profile::{is_valid_name, legacy_name, new_name, path, role_name};
use crate::node_class::Class;
use crate::port::{Error, Iam, Tags};
use crate::provider::Inner;
use crate::tags;

/// Makes sure that there is an instance profile with the role of the class.
pub(super) async fn ensure(inner: &Inner, object: &EC2NodeClass) -> Step<String> {
    if let Some(own) = &object.spec.instance_profile {
        return Step::Found(own.clone());
    }
    let Some(role) = object.spec.role.as_deref().map(role_name) else {
        let message = "neither spec.role nor spec.instanceProfile is set, one of them is needed";
        return Step::wrong(reasons::ROLE_NOT_FOUND, message);
    };
    let settings = &inner.setup.settings;
    let tags = Class::new(object, None, false).ok().and_then(|class| {
        tags::of_instance_profile(&class, &settings.cluster_name, &inner.setup.region).ok()
    });
    // Tags that are wrong are said by the validation.
    let tags = tags.unwrap_or_default();
    match with_role(inner, object, role, &tags).await {
        Ok(name) => Step::Found(name),
        Err(error) if error.is_role_not_found() => Step::wrong(
            reasons::ROLE_NOT_FOUND,
            format!("role {role:?} of spec.role does not exist, create it or name another one"),
        ),
        Err(error) => {
            tracing::error!(error = %error, "failed to ensure the instance profile");
            Step::Unknown
        }
    }
}

async fn with_role(inner: &Inner, object: &EC2NodeClass, role: &str, tags: &Tags) -> Result<String, Error> {
    let iam = &inner.setup.services.iam;
    let known = object.status.as_ref().map_or("", |status| &status.instance_profile);
    if !known.is_empty() {
        match inner.counted("iam:GetInstanceProfile", iam.instance_profile(known)).await {
            Ok(profile) if profile.roles.iter().any(|each| each == role) => return Ok(known.to_owned()),
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    let (cluster, region) = (&inner.setup.settings.cluster_name, &inner.setup.region);
    let class = object.metadata.name.as_deref().unwrap_or_default();
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    // The same class and role give the same name: a second try finds what the first one made.
    let name = new_name(cluster, region, class, &format!("{uid}{role}"));
    let path = path(region, cluster, uid);
    let created = iam.create_instance_profile(&name, &path, tags);
    match inner.counted("iam:CreateInstanceProfile", created).await {
        Err(error) if !error.is_already_exists() => return Err(error),
        _ => {}
    }
    match inner.counted("iam:AddRoleToInstanceProfile", iam.add_role(&name, role)).await {
        Ok(()) => Ok(name),
        Err(error) => {
            let profile = inner.counted("iam:GetInstanceProfile", iam.instance_profile(&name)).await;
            if profile.is_ok_and(|profile| profile.roles.iter().any(|each| each == role)) {
                return Ok(name);
            }
            // Nothing is left behind of what did not work.
            drop(delete(inner, &**iam, &name).await);
            Err(error)
        }
    }
}

/// Deletes an instance profile, if it is there.
async fn delete(inner: &Inner, iam: &dyn Iam, name: &str) -> Result<(), Error> {
    let profile = match inner.counted("iam:GetInstanceProfile", iam.instance_profile(name)).await {
        Err(error) if error.is_not_found() => return Ok(()),
        answer => answer?,
    };
    for role in &profile.roles {
        inner.counted("iam:RemoveRoleFromInstanceProfile", iam.remove_role(name, role)).await?;
    }
    match inner.counted("iam:DeleteInstanceProfile", iam.delete_instance_profile(name)).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Deletes everything that we made for a class.
pub(super) async fn delete_all(inner: &Inner, object: &EC2NodeClass) -> Result<(), Error> {
    if inner.setup.settings.isolated_vpc {
        return Ok(());
    }
    let iam = &inner.setup.services.iam;
    let (cluster, region) = (&inner.setup.settings.cluster_name, &inner.setup.region);
    let path = path(region, cluster, object.metadata.uid.as_deref().unwrap_or_default());
    for profile in inner.counted("iam:ListInstanceProfiles", iam.instance_profiles(&path)).await? {
        delete(inner, &**iam, &profile.name).await?;
    }
    let legacy = legacy_name(cluster, region, object.metadata.name.as_deref().unwrap_or_default());
    if is_valid_name(&legacy) {
        delete(inner, &**iam, &legacy).await?;
    }
    Ok(())
}
