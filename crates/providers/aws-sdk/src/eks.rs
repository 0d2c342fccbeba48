//! EKS.

use aws::port::{Cluster, Eks};
use futures::FutureExt as _;

use crate::Answer;
use crate::error::{error, incomplete};

const DESCRIBE: &str = "eks:DescribeCluster";

/// EKS.
pub(crate) struct Client(pub(crate) aws_sdk_eks::Client);

impl Eks for Client {
    fn cluster<'a>(&'a self, name: &'a str) -> Answer<'a, Cluster> {
        async move {
            let answer = self.0.describe_cluster().name(name).send().await;
            let answer = answer.map_err(|cause| error(DESCRIBE, &cause))?;
            answer.cluster.map(cluster).ok_or_else(|| incomplete(DESCRIBE, "cluster"))
        }
        .boxed()
    }
}

fn cluster(described: aws_sdk_eks::types::Cluster) -> Cluster {
    let network = described.kubernetes_network_config;
    let (ipv4, ipv6) = network.map_or((None, None), |all| (all.service_ipv4_cidr, all.service_ipv6_cidr));
    let unless_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    Cluster {
        endpoint: described.endpoint.unwrap_or_default(),
        version: described.version.unwrap_or_default(),
        arn: described.arn.unwrap_or_default(),
        service_ipv4_cidr: unless_empty(ipv4),
        service_ipv6_cidr: unless_empty(ipv6),
    }
}
