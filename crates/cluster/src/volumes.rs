//! The volumes of pods: whether they can be used, who attaches them, and where. Entry: [`Volumes`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::objects::pod::Volume;
use crate::objects::{PersistentVolume, PersistentVolumeClaim, Pod, StorageClass};
use crate::snapshot::View;

/// Says that a claim got its volume and knows it.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// Says for which node the scheduler wants the volume of a claim.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Plugins of the time before drivers, and the drivers that took over.
const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", EBS),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];
const EBS: &str = "ebs.csi.aws.com";

/// Volumes that nodes of a provider cannot have.
#[derive(Clone, Debug, Default)]
pub struct Unsupported {
    /// Drivers.
    pub provisioners: BTreeSet<Box<str>>,
    /// Labels that its nodes never have.
    pub topology_keys: BTreeSet<Box<str>>,
}

/// Why a volume cannot be used: a message, and what it is about by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeError {
    message: String,
    about: BTreeMap<&'static str, String>,
    /// What would help.
    help: &'static str,
}

impl VolumeError {
    fn new(message: impl Into<String>, about: &[(&'static str, &str)], help: &'static str) -> Self {
        let about = about.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { message: message.into(), about, help }
    }

    /// The same as a sentence for users, with what would help. What was being done at the time does not help them.
    pub fn sentence(&self) -> String {
        let message = self.message.rsplit_once(", ").map_or(&*self.message, |(_, message)| message);
        let is_new = |(_, value): &(&&str, &String)| !value.is_empty() && !message.contains(value.as_str());
        let about: Vec<String> =
            self.about.iter().filter(is_new).map(|(name, value)| format!("{name} {value}")).collect();
        let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        format!("{message}{about}; {}", self.help)
    }
}

impl fmt::Display for VolumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about: Vec<String> = self.about.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "{} ({})", self.message, about.join(", "))
    }
}

impl std::error::Error for VolumeError {}

/// The name of the claim behind a volume of a pod, in the pod's namespace.
fn claim_name(pod: &Pod, volume: &Volume) -> Box<str> {
    match &volume.persistent_volume_claim {
        Some(source) => source.claim_name.clone(),
        None => format!("{}-{}", pod.metadata.name, volume.name).into(),
    }
}

/// The node that the scheduler has chosen for a pod whose volumes are still being made. It says nothing about such a
/// pod until they are there.
pub(crate) fn awaited_on<'c>(
    pod: &Pod,
    claim: impl Fn(&str, &str) -> Option<&'c PersistentVolumeClaim>,
) -> Option<&'c str> {
    pod.spec.volumes.iter().find_map(|volume| {
        let claim = claim(pod.metadata.namespace(), &claim_name(pod, volume))?;
        let chosen = claim.metadata.annotations.get(SELECTED_NODE)?;
        claim.spec.volume_name.is_empty().then_some(&**chosen)
    })
}

/// A condition on where a volume can be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The label of nodes.
    pub key: &'a str,
    /// How its value is compared.
    pub operator: &'a str,
    /// What it is compared with.
    pub values: &'a [Box<str>],
}

/// The volumes of a cluster.
#[derive(Debug)]
pub struct Volumes<'a> {
    claims: BTreeMap<(&'a str, &'a str), &'a PersistentVolumeClaim>,
    persistent: BTreeMap<&'a str, &'a PersistentVolume>,
    classes: BTreeMap<&'a str, &'a StorageClass>,
    unsupported: &'a Unsupported,
}

impl<'a> Volumes<'a> {
    /// The volumes of a cluster.
    pub fn new(view: &View<'a>, unsupported: &'a Unsupported) -> Self {
        let claims = view.persistent_volume_claims.iter().copied();
        Self {
            claims: claims.map(|c| ((c.metadata.namespace(), &*c.metadata.name), c)).collect(),
            persistent: view.persistent_volumes.iter().map(|v| (&*v.metadata.name, *v)).collect(),
            classes: view.storage_classes.iter().map(|c| (&*c.metadata.name, *c)).collect(),
            unsupported,
        }
    }

    /// The claim behind a volume of a pod.
    pub fn claim(&self, pod: &Pod, volume: &Volume) -> Result<&'a PersistentVolumeClaim, VolumeError> {
        let name = claim_name(pod, volume);
        let found = self.claims.get(&(pod.metadata.namespace(), &*name)).copied();
        found.ok_or_else(|| {
            let message =
                format!("getting persistent volume claim, PersistentVolumeClaim {name:?} not found");
            VolumeError::new(message, &[("PersistentVolumeClaim", &name)], "create it")
        })
    }

    /// The node that the scheduler has chosen for a pod whose volumes are still being made.
    pub(crate) fn awaited_on(&self, pod: &Pod) -> Option<&'a str> {
        awaited_on(pod, |namespace, name| self.claims.get(&(namespace, name)).copied())
    }

    /// Fails at the first volume of a pod that cannot be used.
    pub fn validate(&self, pod: &Pod) -> Result<(), VolumeError> {
        pod.spec.volumes.iter().try_for_each(|volume| self.validate_claim(self.claim(pod, volume)?))
    }

    fn validate_claim(&self, claim: &PersistentVolumeClaim) -> Result<(), VolumeError> {
        let key = format!("{}/{}", claim.metadata.namespace(), claim.metadata.name);
        let (volume, class) = (&*claim.spec.volume_name, &*claim.spec.storage_class_name);
        let claim_and_class = [("PersistentVolumeClaim", key.as_str()), ("StorageClass", class)];
        let about_class = |message: &str| VolumeError::new(message, &claim_and_class, "correct the claim");
        if claim.metadata.is_deleting() {
            let about = &[("PersistentVolumeClaim", key.as_str())];
            return Err(VolumeError::new("persistentvolumeclaim is being deleted", about, "create it anew"));
        }
        if &*claim.status.phase == "Lost" {
            return Err(VolumeError::new(
                "persistentvolumeclaim bound to non-existent persistentvolume",
                &[("PersistentVolumeClaim", &key), ("PersistentVolume", volume)],
                "create the claim anew",
            ));
        }
        if !volume.is_empty() {
            let about = [claim_and_class[0], claim_and_class[1], ("PersistentVolume", volume)];
            self.validate_volume(claim, &about)?;
        } else if class.is_empty() {
            return Err(about_class("unbound pvc must define a storage class"));
        } else {
            let Some(found) = self.classes.get(class) else {
                return Err(about_class(&format!(
                    "failed to validate pvc, failed to get storage class, {}",
                    missing_class(class)
                )));
            };
            self.validate_class(found, &claim_and_class)?;
        }
        let driver = self.driver(claim).unwrap_or_default();
        if self.unsupported.provisioners.contains(driver) {
            let about = [claim_and_class[0], claim_and_class[1], ("Provisioner", driver)];
            return Err(VolumeError::new(
                "failed to validate pvc, provisioner is not supported",
                &about,
                "use another StorageClass",
            ));
        }
        Ok(())
    }

    fn validate_volume(
        &self,
        claim: &PersistentVolumeClaim,
        about: &[(&'static str, &str)],
    ) -> Result<(), VolumeError> {
        let name = &*claim.spec.volume_name;
        let Some(volume) = self.persistent.get(name) else {
            return Err(VolumeError::new(
                format!("failed to validate pvc, {}", missing_volume(name)),
                about,
                "create it, or the claim anew",
            ));
        };
        if volume.metadata.is_deleting() {
            return Err(VolumeError::new(
                "failed to validate pvc, persistentvolume is being deleted",
                about,
                "create the claim anew",
            ));
        }
        if claim.metadata.annotations.get(BIND_COMPLETED).is_none() {
            return Err(VolumeError::new(
                "pvc is considered unbound because it does not contain annotation",
                &[
                    ("annotation", BIND_COMPLETED),
                    ("PersistentVolumeClaim", &claim.metadata.name),
                    ("PersistentVolume", name),
                ],
                "wait until it is bound",
            ));
        }
        Ok(())
    }

    fn validate_class(
        &self,
        class: &StorageClass,
        about: &[(&'static str, &str)],
    ) -> Result<(), VolumeError> {
        if &*class.volume_binding_mode == "Immediate" {
            let message = "failed to validate pvc, pvc with immediate volume binding mode must be bound";
            return Err(VolumeError::new(message, about, "wait until it is bound"));
        }
        let mut keys = class.allowed_topologies.iter().flat_map(|term| &term.match_label_expressions);
        let wrong = keys.find(|expression| self.unsupported.topology_keys.contains(&expression.key));
        wrong.map_or(Ok(()), |expression| {
            let mut about = about.to_vec();
            about.push(("TopologyKey", &expression.key));
            let message = "failed to validate pvc, storage class uses unsupported topology key";
            Err(VolumeError::new(message, &about, "use another StorageClass"))
        })
    }

    /// The driver that attaches a claim's volume, if one does.
    pub fn driver(&self, claim: &PersistentVolumeClaim) -> Option<&'a str> {
        if claim.spec.volume_name.is_empty() {
            let provisioner = &*self.classes.get(&*claim.spec.storage_class_name)?.provisioner;
            let migrated = MIGRATED.iter().find(|(plugin, _)| *plugin == provisioner);
            return Some(migrated.map_or(provisioner, |(_, driver)| driver))
                .filter(|driver| !driver.is_empty());
        }
        let volume = &self.persistent.get(&*claim.spec.volume_name)?.spec;
        let own = volume.csi.as_ref().map(|csi| &*csi.driver).filter(|driver| !driver.is_empty());
        own.or(volume.aws_elastic_block_store.is_some().then_some(EBS))
    }

    /// Alternatives for where a volume of a pod can be attached; none at all if it can be anywhere.
    pub fn alternatives(&self, pod: &Pod, volume: &Volume) -> Result<Vec<Vec<Condition<'a>>>, VolumeError> {
        let claim = self.claim(pod, volume).map_err(|error| VolumeError {
            message: format!("discovering persistent volume claim, {}", error.message),
            ..error
        })?;
        let (volume, class) = (&*claim.spec.volume_name, &*claim.spec.storage_class_name);
        if !volume.is_empty() {
            let found = self.persistent.get(volume).ok_or_else(|| {
                let message = format!(
                    "getting existing requirements, getting persistent volume, {}",
                    missing_volume(volume)
                );
                VolumeError::new(message, &[("PersistentVolume", volume)], "create it, or the claim anew")
            })?;
            return Ok(volume_alternatives(found));
        }
        if class.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.classes.get(class).ok_or_else(|| {
            VolumeError::new(
                format!("getting storage class, {}", missing_class(class)),
                &[("StorageClass", class)],
                "create it",
            )
        })?;
        Ok(class_alternatives(found))
    }
}

fn missing_volume(name: &str) -> String {
    format!("PersistentVolume {name:?} not found")
}

fn missing_class(name: &str) -> String {
    format!("StorageClass.storage.k8s.io {name:?} not found")
}

/// A disk of one node does not follow the pod, so its host name does not count; if there was nothing else, the
/// alternative is one without conditions.
fn volume_alternatives(volume: &PersistentVolume) -> Vec<Vec<Condition<'_>>> {
    let on_node = volume.spec.local.is_some() || volume.spec.host_path.is_some();
    let terms = volume.spec.node_affinity.required.node_selector_terms.iter();
    terms
        .filter(|term| !term.match_expressions.is_empty())
        .map(|term| {
            term.match_expressions
                .iter()
                .filter(|expression| !(on_node && &*expression.key == api::names::labels::HOSTNAME))
                .map(|e| Condition { key: &e.key, operator: &e.operator, values: &e.values })
                .collect()
        })
        .collect()
}

fn class_alternatives(class: &StorageClass) -> Vec<Vec<Condition<'_>>> {
    let terms = class.allowed_topologies.iter().filter(|term| !term.match_label_expressions.is_empty());
    terms
        .map(|term| {
            let expressions = term.match_label_expressions.iter();
            expressions.map(|e| Condition { key: &e.key, operator: "In", values: &e.values }).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests;
