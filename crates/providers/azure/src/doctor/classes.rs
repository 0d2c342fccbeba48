//! AKSNodeClasses: the subnet that they name, the images that they resolve to, and what their conditions say.

use api::azure::AKSNodeClass;
use api::conditions::HasConditions as _;
use api::names::conditions::READY;
use api::shared::ConditionStatus;
use cloud::doctor::Check;
use futures::future::try_join_all;

use super::{Subject, patiently};
use crate::arm::{Client, Error};
use crate::class::Class;
use crate::images::{community_image, definitions, shared_images};
use crate::node_class::images::is_fips_impossible;
use crate::node_class::subnet::choose;

/// Looks a class over.
pub(super) async fn look(client: &Client, subject: &Subject, class: &AKSNodeClass) -> Vec<Check> {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    let about = |part: &str| format!("AKSNodeClass {name}, {part}");
    let mut checks = Vec::new();
    if let Err(message) = choose(class, &subject.vnet_subnet_id, &subject.node_resource_group) {
        checks.push(Check::bad(about("subnet"), message, "correct spec.vnetSubnetID"));
    }
    checks.push(of_images(about("images"), images(client, subject, class).await));
    checks.extend(of_conditions(name, class));
    checks
}

/// How many images are found, or why none can be.
async fn images(client: &Client, subject: &Subject, class: &AKSNodeClass) -> Result<usize, String> {
    if is_fips_impossible(class, subject.use_sig) {
        return Err("images for FIPS are only in the shared gallery of AKS".to_owned());
    }
    let version = subject.kubernetes.clone().unwrap_or_default();
    let mut read = Class::from(class);
    if read.kubernetes_version.is_empty() {
        // Which family it is may depend on the version.
        read.kubernetes_version = &version;
    }
    let all = definitions(&read, subject.use_sig);
    if subject.use_sig {
        let listed = patiently(client.node_image_versions(&subject.location)).await;
        return Ok(shared_images(all, "", &listed.map_err(|error| error.to_string())?).len());
    }
    let found = all.iter().map(|definition| async move {
        let gallery = definition.gallery.community;
        let question = client.community_image_versions(&subject.location, gallery, definition.name);
        Ok::<_, Error>(community_image(definition, &patiently(question).await?))
    });
    let found = try_join_all(found).await.map_err(|error| error.to_string())?;
    Ok(found.into_iter().flatten().count())
}

fn of_images(about: String, found: Result<usize, String>) -> Check {
    let advice = "choose another spec.imageFamily or spec.fipsMode";
    match found {
        Ok(0) => Check::bad(about, "there are none in this region", advice),
        Ok(count) => Check::good(about, format!("{count} are found")),
        Err(message) => Check::bad(about, message, advice),
    }
}

/// What the conditions of a class say.
fn of_conditions(name: &str, class: &AKSNodeClass) -> Vec<Check> {
    let about = format!("AKSNodeClass {name}");
    let Some(ready) = class.condition(READY) else {
        let advice = "see whether the controller runs and leads";
        return vec![Check::warning(about, "nobody has looked at it yet", advice)];
    };
    if ready.status == ConditionStatus::True {
        return vec![Check::good(about, "it is ready")];
    }
    let wrong = class
        .conditions()
        .iter()
        .filter(|condition| condition.type_ != READY && condition.status != ConditionStatus::True);
    let one = |condition: &api::shared::Condition| {
        let message = format!("{}: {}", condition.reason, condition.message);
        let about = format!("{about}, {}", condition.type_);
        let advice = "see docs/azure.md, “When an AKSNodeClass is not ready”";
        if condition.status == ConditionStatus::False {
            Check::bad(about, message, advice)
        } else {
            Check::warning(about, message, advice)
        }
    };
    let checks: Vec<Check> = wrong.map(one).collect();
    if checks.is_empty() { vec![Check::bad(about, ready.message.clone(), "see its events")] } else { checks }
}

#[cfg(test)]
mod tests {
    use cloud::doctor::Level;
    use serde_json::json;

    use super::*;
    use crate::node_class::tests::{class, condition};

    #[test]
    fn a_class_that_is_not_ready_says_why() {
        let of = |conditions: serde_json::Value| {
            of_conditions("default", &class(&json!({}), &json!({"conditions": conditions})))
        };
        assert_eq!(of(json!([]))[0].level, Level::Warning);
        assert_eq!(
            of(json!([condition("Ready", "True", 2)])),
            [Check::good("AKSNodeClass default", "it is ready")]
        );
        let checks = of(json!([
            condition("Ready", "False", 2),
            condition("SubnetsReady", "False", 2),
            condition("ImagesReady", "Unknown", 2),
            condition("KubernetesVersionReady", "True", 2),
        ]));
        let named: Vec<(&str, Level)> =
            checks.iter().map(|check| (check.about.as_str(), check.level)).collect();
        assert_eq!(
            named,
            [
                ("AKSNodeClass default, SubnetsReady", Level::Bad),
                ("AKSNodeClass default, ImagesReady", Level::Warning),
            ]
        );
        assert_eq!(checks[0].message, "SubnetsReady: what is wrong");
        assert_eq!(of(json!([condition("Ready", "False", 2)]))[0].level, Level::Bad);
    }
}
