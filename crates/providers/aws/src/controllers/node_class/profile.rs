//! The instance profile of a NodeClass: the user's own, or one that we make for a role.

use api::aws::EC2NodeClass;
use api::names::reasons::aws as reasons;

use super::decide::Step;
use crate::controllers::profiles::Profiles;
use crate::instance_profile::role_name;
use crate::provider::Inner;
use crate::tags;

/// Makes sure that there is an instance profile with the role of the class.
pub(super) async fn ensure(inner: &Inner, object: &EC2NodeClass, profiles: &Profiles) -> Step<String> {
    if let Some(own) = &object.spec.instance_profile {
        let before = object.status.as_ref().map_or("", |status| &status.instance_profile);
        if before != own {
            profiles.protect(before);
        }
        return Step::Found(own.clone());
    }
    let Some(role) = object.spec.role.as_deref().map(role_name) else {
        let message = "neither spec.role nor spec.instanceProfile is set, one of them is needed";
        return Step::wrong(reasons::ROLE_NOT_FOUND, message);
    };
    let settings = &inner.setup.settings;
    let tags = tags::of_instance_profile(object, &settings.cluster_name, &inner.setup.region);
    match profiles.with_role(inner, object, role, &tags).await {
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
