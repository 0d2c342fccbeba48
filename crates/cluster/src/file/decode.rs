//! Finds out of what kind an object is, and decodes it into its type.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::irrelevant::is_irrelevant;
use super::{Place, Reader};

/// An object that has not been decoded yet.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// As text.
    Text(&'a str),
    /// As a tree.
    Tree(&'a Value),
}

impl<'a> Source<'a> {
    fn decode<T: Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        match self {
            Self::Text(text) => serde_json::from_str(text),
            Self::Tree(tree) => {
                serde_path_to_error::deserialize(tree).map_err(serde_path_to_error::Error::into_inner)
            }
        }
    }

    /// The kind, which mostly stands first; the rest of a text is then not looked at.
    fn kind(self) -> Result<Kind<'a>, serde_json::Error> {
        let Self::Text(text) = self else { return self.decode() };
        let mut kind = Kind::default();
        let mut json = serde_json::Deserializer::from_str(text);
        match json.deserialize_map(KindVisitor(&mut kind)) {
            // Leaving early is an error to the deserializer.
            Err(_) if kind.is_complete() => Ok(kind),
            result => result.map(|()| kind),
        }
    }

    /// Namespace and name, as far as they are known.
    fn full_name(self) -> String {
        let NameParts { name, namespace } = self.decode::<Name>().unwrap_or_default().metadata;
        let namespace = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{namespace}{}", name.unwrap_or_default())
    }

    /// Kind, namespace and name, as far as they are known.
    fn name(self, kind: &str) -> String {
        format!("{kind} {}", self.full_name()).trim_end().to_owned()
    }

    /// Decodes again what failed, to find the field that is wrong. That is only done with trees: code that tells paths
    /// is large, and a second kind of it would be larger than all the rest.
    fn explain<T: DeserializeOwned>(self) -> Option<(Option<String>, String)> {
        let tree = match self {
            Self::Text(text) => &serde_json::from_str(text).ok()?,
            Self::Tree(tree) => tree,
        };
        let error = serde_path_to_error::deserialize::<_, T>(tree).err()?;
        let path = error.path().to_string();
        Some(((path != ".").then_some(path), without_position(error.inner())))
    }
}

/// The message without line and column, which count from the beginning of the object and not of the file, and with the
/// names that people have for types.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    const WHOLE: &str = "expected a whole number";
    const TYPES: [(&str, &str); 7] = [
        ("expected i32", WHOLE),
        ("expected i64", WHOLE),
        ("expected u16", WHOLE),
        ("expected u32", WHOLE),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected true or false"),
        ("expected a map", "expected fields with values"),
    ];
    let text = error.to_string();
    let text = text.rfind(" at line ").map_or(&*text, |position| &text[..position]);
    let named = TYPES.iter().find_map(|(name, words)| Some(format!("{}{words}", text.strip_suffix(name)?)));
    named.unwrap_or_else(|| text.to_owned())
}

/// Group, version and kind of an object.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a Kubernetes object")]
pub(super) struct Kind<'a> {
    #[serde(borrow)]
    pub(super) api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
}

impl Kind<'_> {
    fn is_complete(&self) -> bool {
        self.api_version.is_some() && self.kind.is_some()
    }
}

/// Reads fields until the kind is known.
struct KindVisitor<'k, 'de>(&'k mut Kind<'de>);

impl<'de> Visitor<'de> for KindVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while !self.0.is_complete() {
            match map.next_key::<Cow<'de, str>>()?.as_deref() {
                Some("apiVersion") => self.0.api_version = map.next_value()?,
                Some("kind") => self.0.kind = map.next_value()?,
                Some(_) => {
                    map.next_value::<IgnoredAny>()?;
                }
                None => break,
            }
        }
        Ok(())
    }
}

/// The name of an object, for messages.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Name {
    metadata: NameParts,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NameParts {
    name: Option<String>,
    namespace: Option<String>,
}

impl Reader<'_> {
    /// Reads an object, which may leave its kind to the list it is in.
    pub(super) fn object(&mut self, source: Source<'_>, place: Place, list: &Kind<'_>) {
        let own = match source.kind() {
            Ok(own) => own,
            Err(error) => return self.error(place, None, None, without_position(&error)),
        };
        let kind = own.kind.as_deref().or(list.kind.as_deref());
        let Some(kind) = kind.filter(|kind| !kind.is_empty()) else {
            let message = "missing; expected the kind of a Kubernetes object, such as Pod".to_owned();
            return self.error(place, None, Some("kind".to_owned()), message);
        };
        let api_version = own.api_version.as_deref().or(list.api_version.as_deref()).unwrap_or_default();
        self.typed(source, place, api_version, kind);
    }

    fn typed(&mut self, source: Source<'_>, place: Place, api_version: &str, kind: &str) {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        macro_rules! decode {
            ($($group:literal $kind:literal [$($version:literal),+] => $field:ident,)*) => {
                match (group, kind) {
                    $(($group, $kind) => {
                        if !["", $($version),+].contains(&version) {
                            let expected = [$($version),+].map(|version| with_group(group, version)).join(" or ");
                            let message = format!("{api_version} is not supported; expected {expected}");
                            let object = Some(source.name(kind));
                            return self.error(place, object, Some("apiVersion".to_owned()), message);
                        }
                        let decoded = self.decode(source, place, kind);
                        self.contents.objects.$field.extend(decoded);
                    })*
                    _ if is_irrelevant(group, kind) => {
                        self.contents.skipped.add(kind, source.full_name());
                    }
                    _ => {
                        let kind_and_version = format!("{api_version} {kind}");
                        let message = format!("objects of {} are not understood", kind_and_version.trim_start());
                        self.error(place, Some(source.name(kind)), None, message);
                    }
                }
            };
        }
        decode! {
            "" "Pod" ["v1"] => pods,
            "" "Node" ["v1"] => nodes,
            "" "Namespace" ["v1"] => namespaces,
            "" "PersistentVolume" ["v1"] => persistent_volumes,
            "" "PersistentVolumeClaim" ["v1"] => persistent_volume_claims,
            "" "Service" ["v1"] => services,
            "" "ReplicationController" ["v1"] => replication_controllers,
            "" "PodTemplate" ["v1"] => pod_templates,
            "apps" "DaemonSet" ["v1"] => daemon_sets,
            "apps" "ReplicaSet" ["v1"] => replica_sets,
            "apps" "StatefulSet" ["v1"] => stateful_sets,
            "apps" "Deployment" ["v1"] => deployments,
            "batch" "Job" ["v1"] => jobs,
            "batch" "CronJob" ["v1"] => cron_jobs,
            "storage.k8s.io" "StorageClass" ["v1"] => storage_classes,
            "storage.k8s.io" "CSINode" ["v1"] => csi_nodes,
            "policy" "PodDisruptionBudget" ["v1"] => pod_disruption_budgets,
            "scheduling.k8s.io" "PriorityClass" ["v1"] => priority_classes,
            "autoscaling.x-k8s.io" "CapacityBuffer" ["v1beta1"] => capacity_buffers,
            "karpenter.sh" "NodePool" ["v1"] => node_pools,
            "karpenter.sh" "NodeClaim" ["v1"] => node_claims,
            "karpenter.sh" "NodeOverlay" ["v1alpha1"] => node_overlays,
            "karpenter.kwok.sh" "KWOKNodeClass" ["v1alpha1"] => kwok_node_classes,
            "karpenter.k8s.aws" "EC2NodeClass" ["v1"] => ec2_node_classes,
            "karpenter.azure.com" "AKSNodeClass" ["v1beta1", "v1alpha2"] => aks_node_classes,
        }
    }

    fn decode<T: DeserializeOwned>(&mut self, source: Source<'_>, place: Place, kind: &str) -> Option<T> {
        let error = match source.decode::<T>() {
            Ok(object) => return Some(object),
            Err(error) => error,
        };
        let (field, message) = source.explain::<T>().unwrap_or((None, without_position(&error)));
        self.error(place, Some(source.name(kind)), field, message);
        None
    }
}

fn with_group(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
