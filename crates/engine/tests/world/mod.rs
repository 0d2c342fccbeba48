//! Builds snapshots for tests in a few words, and states what is expected of plans.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

use std::sync::Arc;

use engine::intern::KeyId;
use engine::model::{
    Catalogue, CatalogueId, ClassId, Effect, Expression, Guard, InstanceType, KnownKeys, LabelsId, Limit,
    NamespaceId, Node, NodeId, NodeObject, Offering, Overlaid, Pod, PodClass, PodTerm, Pool, Running,
    Selector, Snapshot, Spread, Taint, TaintsId, Test, Toleration, TolerationOperator, TolerationsId,
};
use engine::options::Options;
use engine::requirement::Requirement;
use engine::resources::{self, Amounts};
use engine::solve::{Place, Plan, solve};
use engine::universe::{SetId, Universe};
use units::Quantity;

pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const HOSTNAME: &str = "kubernetes.io/hostname";
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub const ARCH: &str = "kubernetes.io/arch";
pub const OS: &str = "kubernetes.io/os";

/// A cluster in the making.
pub struct World {
    pub snapshot: Snapshot,
    pub options: Options,
}

impl World {
    /// An empty cluster.
    pub fn new() -> Self {
        let mut snapshot = Snapshot::default();
        snapshot.keys = KnownKeys::new(&mut snapshot.universe, Some("test/reservation"));
        for key in [ARCH, OS] {
            let key = snapshot.universe.key(key);
            snapshot.universe.set_well_known(key);
        }
        snapshot.namespaces.intern("default");
        Self { snapshot, options: Options::default() }
    }

    /// A cluster with one pool that can use the 144 simulated types.
    pub fn with_simulated_types() -> Self {
        let mut world = Self::new();
        let catalogue = world.simulated_types();
        world.pool("default", &[], catalogue);
        world
    }

    pub fn universe(&mut self) -> &mut Universe {
        &mut self.snapshot.universe
    }

    /// Requirements such as `("zone", "In", ["a"])`.
    pub fn set(&mut self, requirements: &[(&str, &str, &[&str])]) -> SetId {
        let mut list = Vec::new();
        for (key, operator, values) in requirements {
            let universe = &mut self.snapshot.universe;
            let key = universe.key(key);
            let ids: Vec<_> = values.iter().map(|value| universe.value(key, value)).collect();
            let bound = || values[0].parse().expect("an integer");
            let requirement = match *operator {
                "In" => Requirement::within(ids),
                "NotIn" => Requirement::not_in(ids),
                "Exists" => Requirement::exists(),
                "DoesNotExist" => Requirement::does_not_exist(),
                "Gt" => Requirement::greater_than(bound()),
                "Lt" => Requirement::less_than(bound()),
                "Gte" => Requirement::at_least(bound()),
                "Lte" => Requirement::at_most(bound()),
                other => panic!("no operator {other}"),
            };
            list.push((key, requirement));
        }
        self.snapshot.universe.set(list)
    }

    pub fn requests(&mut self, amounts: &[(&str, &str)]) -> Amounts {
        amounts
            .iter()
            .map(|(name, amount)| {
                let resource = self.snapshot.resources.intern(name);
                (resource, resources::request(resource, quantity(amount)))
            })
            .collect()
    }

    pub fn taints(&mut self, taints: &[(&str, Effect)]) -> TaintsId {
        let list = taints.iter().map(|(key, effect)| {
            let (key, value) = key.split_once('=').unwrap_or((key, ""));
            Taint { key: key.into(), value: value.into(), effect: *effect }
        });
        TaintsId(self.snapshot.taints.intern(list.collect()))
    }

    pub fn tolerations(&mut self, keys: &[&str]) -> TolerationsId {
        let list = keys.iter().map(|key| Toleration {
            key: Some((*key).into()),
            operator: TolerationOperator::Exists,
            value: "".into(),
            effect: None,
        });
        TolerationsId(self.snapshot.tolerations.intern(list.collect()))
    }

    pub fn labels(&mut self, labels: &[(&str, &str)]) -> LabelsId {
        let universe = &mut self.snapshot.universe;
        let mut list: Vec<_> = labels
            .iter()
            .map(|(key, value)| {
                let key = universe.key(key);
                (key, universe.value(key, value))
            })
            .collect();
        list.sort_unstable();
        LabelsId(self.snapshot.labels.intern(list))
    }

    pub fn selector(&mut self, labels: &[(&str, &str)]) -> Selector {
        let universe = &mut self.snapshot.universe;
        let mut expressions: Vec<Expression> = labels
            .iter()
            .map(|(key, value)| {
                let key = universe.key(key);
                Expression { key, test: Test::In(vec![universe.value(key, value)]) }
            })
            .collect();
        expressions.sort();
        Selector { expressions }
    }

    pub fn key(&mut self, name: &str) -> KeyId {
        self.snapshot.universe.key(name)
    }

    pub fn spread(&mut self, key: &str, max_skew: i32, labels: &[(&str, &str)]) -> Spread {
        Spread {
            key: self.key(key),
            max_skew,
            min_domains: None,
            optional: false,
            selector: Some(self.selector(labels)),
            honor_affinity: true,
            honor_taints: false,
        }
    }

    pub fn term(&mut self, key: &str, labels: &[(&str, &str)]) -> PodTerm {
        PodTerm {
            key: self.key(key),
            namespaces: vec![NamespaceId(0)],
            selector: Some(self.selector(labels)),
        }
    }

    /// A type with one on-demand offering in each zone.
    pub fn instance_type(
        &mut self,
        name: &str,
        amounts: &[(&str, &str)],
        zones: &[&str],
        price: f64,
    ) -> InstanceType {
        let requirements = self.set(&[
            (INSTANCE_TYPE, "In", &[name]),
            (ZONE, "In", zones),
            (CAPACITY_TYPE, "In", &["on-demand"]),
            (ARCH, "In", &["amd64"]),
            (OS, "In", &["linux"]),
        ]);
        let offerings = zones
            .iter()
            .map(|zone| Offering {
                requirements: self.set(&[(ZONE, "In", &[zone]), (CAPACITY_TYPE, "In", &["on-demand"])]),
                price,
                available: true,
                reservation: None,
                capacity_override: Vec::new(),
                overhead_override: Vec::new(),
            })
            .collect();
        let key = self.snapshot.keys.instance_type;
        InstanceType {
            name: self.snapshot.universe.value(key, name),
            requirements,
            offerings,
            capacity: self.requests(amounts),
            without: Vec::new(),
            overhead: Amounts::default(),
            volume_limits: Vec::new(),
            overlaid: Overlaid::default(),
        }
    }

    pub fn catalogue(&mut self, types: Vec<InstanceType>) -> CatalogueId {
        self.snapshot.catalogues.push(Arc::new(Catalogue { types }));
        CatalogueId::at(self.snapshot.catalogues.len() - 1)
    }

    /// The 144 types of the simulated cloud: four zones, spot and on demand.
    pub fn simulated_types(&mut self) -> CatalogueId {
        let zones = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
        let mut types = Vec::new();
        for cpu in [1u32, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256] {
            for (factor, family) in [(2u32, "c"), (4, "s"), (8, "m")] {
                for os in ["linux", "windows"] {
                    for arch in ["amd64", "arm64"] {
                        let name = format!("{family}-{cpu}x-{arch}-{os}");
                        let memory = f64::from(cpu * factor) * 1_073_741_824.0;
                        let price = 0.025 * f64::from(cpu) + 0.001 * memory / 1e9;
                        types.push(self.simulated_type(&name, cpu, cpu * factor, os, arch, price, &zones));
                    }
                }
            }
        }
        self.catalogue(types)
    }

    #[allow(clippy::too_many_arguments, reason = "a row of a table")]
    fn simulated_type(
        &mut self,
        name: &str,
        cpu: u32,
        memory: u32,
        os: &str,
        arch: &str,
        price: f64,
        zones: &[&str],
    ) -> InstanceType {
        let mut it = self.instance_type(
            name,
            &[
                ("cpu", &cpu.to_string()),
                ("memory", &format!("{memory}Gi")),
                ("ephemeral-storage", "20Gi"),
                ("pods", &(16 * cpu).min(1024).to_string()),
            ],
            zones,
            price,
        );
        it.requirements = self.set(&[
            (INSTANCE_TYPE, "In", &[name]),
            (ZONE, "In", zones),
            (CAPACITY_TYPE, "In", &["on-demand", "spot"]),
            (ARCH, "In", &[arch]),
            (OS, "In", &[os]),
        ]);
        it.overhead = self.requests(&[("cpu", "100m"), ("memory", "10Mi")]);
        for zone in zones {
            let requirements = self.set(&[(ZONE, "In", &[zone]), (CAPACITY_TYPE, "In", &["spot"])]);
            it.offerings.push(Offering { requirements, price: price * 0.7, ..it.offerings[0].clone() });
        }
        it
    }

    pub fn pool(&mut self, name: &str, requirements: &[(&str, &str, &[&str])], catalogue: CatalogueId) {
        let declared = self.set(requirements);
        let own = self.set(&[("karpenter.sh/nodepool", "In", &[name])]);
        let requirements = self.snapshot.universe.intersect(declared, own);
        self.snapshot.pools.push(Pool {
            name: name.into(),
            requirements,
            declared,
            taints: TaintsId::default(),
            limits: Vec::new(),
            catalogue: Some(catalogue),
        });
    }

    pub fn limit(&mut self, pool: usize, name: &str, amount: &str) {
        let resource = self.snapshot.resources.intern(name);
        let remaining = resources::capacity(resource, quantity(amount));
        self.snapshot.pools[pool].limits.push(Limit { resource, bound: remaining, remaining });
    }

    /// A pod class with only requests.
    pub fn class(&mut self, amounts: &[(&str, &str)]) -> PodClass {
        let mut requests = self.requests(amounts);
        requests.add(&self.requests(&[("pods", "1")]));
        PodClass { requests, ..PodClass::default() }
    }

    pub fn pods(&mut self, count: usize, class: PodClass) {
        let known = self.snapshot.classes.iter().position(|known| *known == class);
        let class = ClassId::at(known.unwrap_or_else(|| {
            self.snapshot.classes.push(class);
            self.snapshot.classes.len() - 1
        }));
        for _ in 0..count {
            let number = self.snapshot.pods.len();
            self.snapshot.pods.push(Pod {
                name: format!("default/pod-{number}").into(),
                uid: format!("{number:08}").into(),
                created: 0,
                class,
                runs: None,
                nominated: None,
            });
        }
    }

    /// A node with room, whose Node object says the same as its claim.
    pub fn node(&mut self, name: &str, labels: &[(&str, &str)], amounts: &[(&str, &str)]) -> NodeId {
        let labels: Vec<(&str, &str, &[&str])> =
            labels.iter().map(|(key, value)| (*key, "In", std::slice::from_ref(value))).collect();
        let labels = self.set(&labels);
        let taints = self.taints(&[]);
        let key = self.snapshot.keys.hostname;
        let available = self.requests(amounts);
        let node = Node {
            name: name.into(),
            hostname: self.universe().value(key, name),
            labels,
            taints,
            resources: available.iter().map(|(resource, _)| resource).collect(),
            available,
            daemon_requests: Amounts::default(),
            initialized: true,
            open: true,
            takes_moved: true,
            object: Some(NodeObject { labels, taints }),
            ports: Vec::new(),
            volumes: Vec::new(),
            volume_limits: Vec::new(),
            share: None,
        };
        self.snapshot.nodes.push(node);
        NodeId::at(self.snapshot.nodes.len() - 1)
    }

    /// A running pod that keeps pods with some labels out of its domain.
    pub fn guard(&mut self, node: NodeId, key: &str, labels: &[(&str, &str)]) {
        let terms = vec![self.term(key, labels)];
        let tolerations = self.tolerations(&[]);
        self.snapshot.guards.push(Guard { node, tolerations, terms });
    }

    /// Running pods with some labels.
    pub fn running(&mut self, node: NodeId, labels: &[(&str, &str)], count: i32) {
        let labels = self.labels(labels);
        self.snapshot.running.push(Running { node, namespace: NamespaceId::default(), labels, count });
    }

    pub fn solve(&self) -> Plan {
        solve(&self.snapshot, &self.options)
    }
}

pub fn quantity(text: &str) -> Quantity {
    text.parse().expect("a quantity")
}

/// How many pods each new claim has, most first.
pub fn sizes(plan: &Plan) -> Vec<usize> {
    let mut sizes: Vec<usize> = plan.claims.iter().map(|claim| claim.pods.len()).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}

/// How many pods were placed.
pub fn placed(plan: &Plan) -> usize {
    plan.places.iter().flatten().count()
}

/// How many pods went to nodes that existed.
pub fn on_nodes(plan: &Plan) -> usize {
    plan.places.iter().filter(|place| matches!(place, Some(Place::Node(_)))).count()
}
