//! What AKS says about the cluster: whether nodes can be made for it, and what gets in the way of them.

use cloud::doctor::Check;

use super::Subject;
use crate::arm::Error;
use crate::arm::types::cluster::{AgentPool, AgentPoolProperties, ManagedCluster};
use crate::node_class::limits::{Facts, refusals};

/// What AKS answers, if it was asked.
type Answer<'a> = Option<&'a Result<ManagedCluster, Error>>;

/// Who we are. That a token was given out is known when this is asked.
pub(super) fn identity(subscription: &str, cluster: Answer<'_>) -> Check {
    match cluster {
        Some(Err(error)) if error.status == Some(401) => {
            Check::bad("credentials", error.to_string(), "give the service account a workload identity")
        }
        Some(Err(error)) if error.has_code("SubscriptionNotFound") => Check::bad(
            "credentials",
            format!("the subscription {subscription} is not known, {error}"),
            "check AZURE_SUBSCRIPTION_ID and the directory that the identity belongs to",
        ),
        _ => Check::good("credentials", format!("a token was given out, subscription {subscription}")),
    }
}

/// What is said about the cluster.
pub(super) fn report(subject: &Subject, cluster: Answer<'_>) -> Vec<Check> {
    let about = format!("cluster {}", subject.cluster_name);
    match cluster {
        Some(Ok(cluster)) => {
            let mut checks = of_cluster(&about, subject, cluster);
            checks.extend(of_pools(cluster.pools()));
            checks
        }
        Some(Err(error)) if error.is_not_found() => {
            let advice = "check --cluster-name, --resource-group and the subscription";
            vec![Check::bad(about, format!("AKS does not know it, {error}"), advice)]
        }
        Some(Err(error)) => {
            let advice = "the role Reader on the cluster allows it; nodes can be launched without";
            vec![Check::warning(about, format!("AKS does not say anything about it, {error}"), advice)]
        }
        None => {
            let advice = "set --resource-group, or ARM_RESOURCE_GROUP for the controller";
            let message =
                "its resource group is not known, so AKS is not asked whether nodes can be made for it";
            vec![Check::warning(about, message, advice)]
        }
    }
}

fn of_cluster(about: &str, subject: &Subject, cluster: &ManagedCluster) -> Vec<Check> {
    let mut checks = Vec::new();
    if cluster.is_stopped() {
        let advice = "start it; while it is stopped nobody removes or repairs its nodes, and they are paid";
        checks.push(Check::bad(about, "it is stopped, which clusters with Karpenter should not be", advice));
    }
    if cluster.has_node_auto_provisioning() {
        checks.push(Check::bad(
            about,
            "AKS runs a Karpenter for it (node auto provisioning), and two would manage the same nodes",
            "update the cluster with --node-provisioning-mode Manual, or uninstall this one",
        ));
    }
    let mut facts = Facts::default();
    facts.learn(cluster, subject.mode);
    for refusal in refusals(&facts) {
        let advice = format!("every AKSNodeClass says {}, see docs/azure.md", refusal.reason);
        checks.push(Check::bad(about, refusal.message, advice));
    }
    if !cluster.has_workload_identity() {
        checks.push(Check::warning(
            about,
            "its service accounts are no identities for Azure",
            "update the cluster with --enable-oidc-issuer --enable-workload-identity, unless the controller has another identity",
        ));
    }
    if checks.is_empty() {
        let version = cluster.properties.current_kubernetes_version.as_deref().unwrap_or("of unknown number");
        let network = cluster.properties.network_profile.clone().unwrap_or_default();
        let words = [network.network_plugin, network.network_plugin_mode, network.network_dataplane];
        let words: Vec<String> = words.into_iter().flatten().collect();
        checks.push(Check::good(about, format!("Kubernetes {version}, network {}", words.join(" "))));
    }
    let of_keys = cluster.properties.disk_encryption_set_id.as_deref().filter(|id| !id.is_empty());
    if let (Some(id), None) = (of_keys, &subject.disk_encryption_set) {
        let message = format!("its disks are encrypted by {id}, those of our nodes are not");
        checks.push(Check::warning(about, message, "set NODE_OSDISK_DISKENCRYPTIONSET_ID"));
    }
    checks
}

/// What agent pools do that nodes of ours do not go well with.
fn of_pools(pools: &[AgentPoolProperties]) -> Vec<Check> {
    let names = |is_meant: fn(&AgentPoolProperties) -> bool| -> Vec<&str> {
        pools.iter().filter(|pool| is_meant(pool)).filter_map(|pool| pool.name.as_deref()).collect()
    };
    let mut checks = Vec::new();
    let scaled = names(|pool| pool.enable_auto_scaling == Some(true));
    if !scaled.is_empty() {
        checks.push(Check::warning(
            format!("agent pools {}", scaled.join(", ")),
            "the cluster autoscaler adds nodes to them for the same pods",
            "disable it there, or keep the pods apart by taints; node auto provisioning of AKS refuses such clusters",
        ));
    }
    checks
}

/// What is said about the pool that AKS makes machines in.
pub(super) fn pool(subject: &Subject, pool: Option<&Result<AgentPool, Error>>) -> Option<Check> {
    let about = format!("agent pool {}", subject.machines_pool);
    let advice = "see deploy/azure/add-aks-machines-pool.sh";
    Some(match pool? {
        Ok(pool) => {
            let mode = pool.properties.mode.as_deref().unwrap_or_default();
            if mode.eq_ignore_ascii_case("Machines") {
                Check::good(about, "it is for machines")
            } else {
                Check::bad(about, format!("its mode is {mode:?}, expected Machines"), advice)
            }
        }
        Err(error) => Check::bad(about, error.to_string(), advice),
    })
}

#[cfg(test)]
mod tests {
    use cloud::doctor::Level;
    use serde_json::{Value, json};

    use super::*;

    fn checks(properties: &Value) -> Vec<Check> {
        let cluster: ManagedCluster = serde_json::from_value(json!({"properties": properties})).unwrap();
        report(&Subject { cluster_name: "c".to_owned(), ..Subject::default() }, Some(&Ok(cluster)))
    }

    fn usual() -> Value {
        json!({
            "currentKubernetesVersion": "1.34.2", "powerState": {"code": "Running"},
            "servicePrincipalProfile": {"clientId": "msi"},
            "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay", "networkDataplane": "cilium"},
            "oidcIssuerProfile": {"enabled": true}, "securityProfile": {"workloadIdentity": {"enabled": true}},
        })
    }

    #[test]
    fn a_usual_cluster_is_good() {
        let found = checks(&usual());
        assert_eq!(found, [Check::good("cluster c", "Kubernetes 1.34.2, network azure overlay cilium")]);
    }

    // azure.md 23: every limit that a cluster can have
    #[test]
    fn each_limit_of_a_cluster_is_a_line_of_its_own() {
        let rows = [
            (json!({"powerState": {"code": "Stopped"}}), Level::Bad, "it is stopped"),
            (json!({"nodeProvisioningProfile": {"mode": "Auto"}}), Level::Bad, "node auto provisioning"),
            (json!({"servicePrincipalProfile": {"clientId": "1"}}), Level::Bad, "service principal"),
            (json!({"networkProfile": {"networkPlugin": "kubenet"}}), Level::Bad, "kubenet"),
            (json!({"networkProfile": {"networkPolicy": "calico"}}), Level::Bad, "calico"),
            (json!({"networkProfile": {"ipFamilies": ["IPv4", "IPv6"]}}), Level::Bad, "IPv6"),
            (json!({"httpProxyConfig": {"httpsProxy": "http://p"}}), Level::Bad, "HTTP proxy"),
            (json!({"diskEncryptionSetID": "/keys"}), Level::Warning, "encrypted by /keys"),
            (json!({"oidcIssuerProfile": {"enabled": false}}), Level::Warning, "no identities"),
            (
                json!({"agentPoolProfiles": [{"name": "a", "enableAutoScaling": true}, {"name": "b"}]}),
                Level::Warning,
                "the cluster autoscaler",
            ),
            (
                json!({"agentPoolProfiles": [{"name": "a", "podSubnetID": "/s"}]}),
                Level::Bad,
                "subnet of their own",
            ),
            (
                json!({"nodeResourceGroupProfile": {"restrictionLevel": "ReadOnly"}}),
                Level::Bad,
                "--nrg-lockdown-restriction-level Unrestricted",
            ),
        ];
        for (change, level, text) in rows {
            let mut properties = usual();
            for (name, value) in change.as_object().into_iter().flatten() {
                properties[name] = value.clone();
            }
            let found = checks(&properties);
            let hits = found.iter().filter(|check| check.level == level && check.message.contains(text));
            assert_eq!(hits.count(), 1, "{change}: {found:?}");
        }
        let mut properties = usual();
        properties["securityProfile"]["customCATrustCertificates"] = json!(["Y2VydA=="]);
        let found = checks(&properties);
        assert!(found[0].advice.contains("CustomCAUnsupported"), "{found:?}");
    }

    #[test]
    fn a_cluster_that_may_not_be_read_is_worth_a_look_and_one_that_is_not_there_is_bad() {
        let subject = Subject::default();
        let answered = |status: u16| Err(Error { status: Some(status), ..Error::default() });
        assert_eq!(report(&subject, Some(&answered(403)))[0].level, Level::Warning);
        assert_eq!(report(&subject, Some(&answered(404)))[0].level, Level::Bad);
        assert_eq!(report(&subject, None)[0].level, Level::Warning);
        assert_eq!(identity("s", Some(&answered(401))).level, Level::Bad);
        assert_eq!(identity("s", None).level, Level::Good);
    }
}
