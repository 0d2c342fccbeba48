//! Finds out of what kind an object is, and decodes it into its type.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

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

/// The message without line and column, which count from the beginning of the object and not of the file.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(position) => text[..position].to_owned(),
        None => text,
    }
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
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        macro_rules! decode {
            ($($group:literal $kind:literal => $field:ident,)*) => {
                match (group, kind) {
                    $(($group, $kind) => {
                        let decoded = self.decode(source, place, kind);
                        self.contents.objects.$field.extend(decoded);
                    })*
                    _ => self.contents.skipped.add(kind),
                }
            };
        }
        decode! {
            "" "Pod" => pods,
            "" "Node" => nodes,
            "" "Namespace" => namespaces,
            "" "PersistentVolume" => persistent_volumes,
            "" "PersistentVolumeClaim" => persistent_volume_claims,
            "" "Service" => services,
            "" "ReplicationController" => replication_controllers,
            "" "PodTemplate" => pod_templates,
            "apps" "DaemonSet" => daemon_sets,
            "apps" "ReplicaSet" => replica_sets,
            "apps" "StatefulSet" => stateful_sets,
            "apps" "Deployment" => deployments,
            "storage.k8s.io" "StorageClass" => storage_classes,
            "storage.k8s.io" "CSINode" => csi_nodes,
            "policy" "PodDisruptionBudget" => pod_disruption_budgets,
            "scheduling.k8s.io" "PriorityClass" => priority_classes,
            "autoscaling.x-k8s.io" "CapacityBuffer" => capacity_buffers,
            "karpenter.sh" "NodePool" => node_pools,
            "karpenter.sh" "NodeClaim" => node_claims,
            "karpenter.sh" "NodeOverlay" => node_overlays,
            "karpenter.kwok.sh" "KWOKNodeClass" => kwok_node_classes,
            "karpenter.k8s.aws" "EC2NodeClass" => ec2_node_classes,
            "karpenter.azure.com" "AKSNodeClass" => aks_node_classes,
        }
    }

    fn decode<T: DeserializeOwned>(&mut self, source: Source<'_>, place: Place, kind: &str) -> Option<T> {
        let error = match source.decode::<T>() {
            Ok(object) => return Some(object),
            Err(error) => error,
        };
        let NameParts { name, namespace } = source.decode::<Name>().unwrap_or_default().metadata;
        let object = match (namespace, name) {
            (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
            (None, Some(name)) => format!("{kind} {name}"),
            (_, None) => kind.to_owned(),
        };
        let (field, message) = source.explain::<T>().unwrap_or((None, without_position(&error)));
        self.error(place, Some(object), field, message);
        None
    }
}
