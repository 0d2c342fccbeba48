//! Whether our types lose anything of what the API server stores. Entry: [`round_trip`].

use std::fmt::Display;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use api::aws::EC2NodeClass;
use api::azure::{self, AKSNodeClass};
use api::capacitybuffer::CapacityBuffer;
use api::kwok::KWOKNodeClass;
use api::nodeclaim::NodeClaim;
use api::nodeoverlay::NodeOverlay;
use api::nodepool::NodePool;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use units::{GoDuration, Quantity};

use crate::cluster::{Cluster, text, versions};
use crate::exceptions::{UNREADABLE, UNWRITABLE};
use crate::run::{Accepted, Results};

/// Quantities that the schema does not mark as such.
const QUANTITIES: [&str; 1] = ["volumeSize"];
/// Durations that upstream's types rewrite; all others keep their text.
const DURATIONS: [&str; 2] = ["terminationGracePeriod", "nodeRegistrationDelay"];
/// Fields that upstream's types leave out when they are empty, false or zero, besides empty lists in a status.
const LEFT_OUT: [&str; 3] = ["observedGeneration", "rootVolume", "values"];

/// Reads every accepted object into its type, writes it again, and returns every difference found.
///
/// What is written is also sent, because the API server has the last word on whether it is the same object.
pub(crate) fn round_trip(cluster: &Cluster, results: &Results) -> Vec<String> {
    let difference = |accepted: &Accepted| {
        let (crd, case) = (&accepted.endpoint.crd, &accepted.case);
        check(cluster, accepted).err().map(|error| format!("{crd}: {case}\n  {error:#}"))
    };
    results.accepted.iter().filter_map(difference).collect()
}

fn check(cluster: &Cluster, accepted: &Accepted) -> Result<()> {
    let ours = match rewrite(accepted) {
        Err(_) if UNREADABLE.contains(&accepted.case.as_str()) => return Ok(()),
        ours => ours.context("our type cannot read it")?,
    };
    let schema = schema(cluster, accepted);
    compare(schema, &accepted.object, &ours, "")?;
    // As with upstream's types, an absent spec becomes an empty one, which may then get defaults.
    let Some(spec) = accepted.object.get("spec") else { return Ok(()) };

    let mut again = ours;
    again["metadata"] = json!({"name": "again"});
    let path = format!("{}?dryRun=All&fieldValidation=Strict", accepted.endpoint.path);
    let reply = cluster.send(Method::POST, &path, Some(&again))?;
    if !reply.is_success() {
        if UNWRITABLE.contains(&accepted.case.as_str()) {
            return Ok(());
        }
        bail!("the API server refuses what our type writes: {}", reply.message());
    }
    compare(&schema["properties"]["spec"], spec, &reply.body["spec"], "spec")
}

/// The object as our type writes it after reading it.
fn rewrite(accepted: &Accepted) -> Result<Value> {
    let endpoint = &accepted.endpoint;
    let (plural, _) = endpoint.crd.split_once('.').context("a CRD is named after plural and group")?;
    let object = accepted.object.clone();
    let mut ours = match (plural, endpoint.version.as_str()) {
        ("nodepools", "v1") => through::<NodePool>(object),
        ("nodeclaims", "v1") => through::<NodeClaim>(object),
        ("nodeoverlays", "v1alpha1") => through::<NodeOverlay>(object),
        ("capacitybuffers", "v1beta1") => through::<CapacityBuffer>(object),
        ("kwoknodeclasses", "v1alpha1") => through::<KWOKNodeClass>(object),
        ("ec2nodeclasses", "v1") => through::<EC2NodeClass>(object),
        ("aksnodeclasses", "v1beta1") => through::<AKSNodeClass>(object),
        ("aksnodeclasses", "v1alpha2") => through::<azure::v1alpha2::AKSNodeClass>(object),
        (plural, version) => bail!("no type is known for {plural} {version}"),
    }?;
    // The types leave these to the client.
    for field in ["apiVersion", "kind"] {
        ours[field] = accepted.object[field].clone();
    }
    Ok(ours)
}

fn through<K: DeserializeOwned + Serialize>(object: Value) -> Result<Value> {
    let typed: K = serde_json::from_value(object)?;
    Ok(serde_json::to_value(typed)?)
}

fn schema<'a>(cluster: &'a Cluster, accepted: &Accepted) -> &'a Value {
    let endpoint = &accepted.endpoint;
    let crd = cluster.crds.iter().find(|crd| text(crd, "/metadata/name") == endpoint.crd);
    let crd = crd.expect("objects are sent only to CRDs that were applied");
    let version = versions(crd).iter().find(|version| text(version, "/name") == endpoint.version);
    version.and_then(|version| version.pointer("/schema/openAPIV3Schema")).expect("a version has a schema")
}

/// Whether two objects are the same, except for what upstream's own types change as well: quantities, times and
/// plain durations become canonical, some empty fields are left out, and an absent text or object is written empty.
fn compare(schema: &Value, stored: &Value, ours: &Value, place: &str) -> Result<()> {
    let field = place.rsplit('.').next().unwrap_or(place);
    if schema["x-kubernetes-int-or-string"] == true || QUANTITIES.contains(&field) {
        return canonical::<Quantity>(&as_text(stored), &as_text(ours), place);
    }
    if schema["format"] == "date-time" {
        return canonical::<jiff::Timestamp>(&as_text(stored), &as_text(ours), place);
    }
    if DURATIONS.contains(&field) {
        return canonical::<GoDuration>(&as_text(stored), &as_text(ours), place);
    }
    match (stored, ours) {
        (Value::Object(stored), Value::Object(ours)) => compare_fields(schema, stored, ours, place),
        (Value::Array(stored), Value::Array(ours)) if stored.len() == ours.len() => {
            let mut pairs = stored.iter().zip(ours).enumerate();
            pairs.try_for_each(|(i, (stored, ours))| {
                compare(&schema["items"], stored, ours, &format!("{place}[{i}]"))
            })
        }
        _ if stored == ours => Ok(()),
        _ => bail!("{place} is stored as {stored}, and our type writes {ours}"),
    }
}

fn compare_fields(
    schema: &Value,
    stored: &Map<String, Value>,
    ours: &Map<String, Value>,
    place: &str,
) -> Result<()> {
    for (name, value) in stored {
        let place = format!("{place}.{name}");
        let schema = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
        match ours.get(name) {
            Some(ours) => compare(schema, value, ours, &place)?,
            None if LEFT_OUT.contains(&name.as_str()) && is_zero(value) => {}
            None if place.starts_with(".status.") && *value == json!([]) => {}
            None => bail!("{place} is stored as {value}, and our type leaves it out"),
        }
    }
    let is_written_empty = |value: &Value| *value == json!("") || *value == json!({});
    let added = ours.iter().find(|(name, value)| !stored.contains_key(*name) && !is_written_empty(value));
    added.map_or(Ok(()), |(name, value)| bail!("{place}.{name} is not stored, and our type writes {value}"))
}

fn is_zero(value: &Value) -> bool {
    [json!([]), json!(false), json!(0)].contains(value)
}

/// Both texts must mean the same, and ours must be the canonical one.
fn canonical<T: FromStr<Err: Display> + Display>(stored: &str, ours: &str, place: &str) -> Result<()> {
    let stored: T = stored.parse().map_err(|error| anyhow::anyhow!("{place}: {error}"))?;
    if stored.to_string() != ours {
        bail!("{place} is stored as {stored}, and our type writes {ours}");
    }
    Ok(())
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
