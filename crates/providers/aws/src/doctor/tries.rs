//! Tries everything that the controller does, harmlessly: lists are asked for, EC2 only says what it would do, and where
//! nothing can be tried, IAM is asked what the policies say.

use std::collections::BTreeMap;

use api::names::tags::aws as names;
use futures::future::join_all;

use super::actions::{Matter, POLICIES};
use super::permissions::{Outcome, Outcomes, note, note_simulated};
use super::{Subject, patiently, unanswered};
use crate::instance_profile::cluster_path;
use crate::port::{
    CallerIdentity, Error, FleetOverride, FleetPurchase, FleetRequest, FleetTemplate, LaunchTemplate,
    Listing, PlainRun, ProductQuery, Services, Simulation, Tags, Trial,
};

/// A parameter that AWS publishes everywhere.
const PARAMETER: &str = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64";
/// What nobody has, so that nothing is found.
const NOBODY: &str = "karpenter-doctor";

/// What there is to try things with.
pub(super) struct Ground<'a> {
    pub(super) services: &'a Services,
    pub(super) subject: &'a Subject,
    /// An instance of the cluster.
    pub(super) instance: Option<&'a str>,
    /// A launch template of the cluster.
    pub(super) template: Option<&'a LaunchTemplate>,
    /// An instance that could be run.
    pub(super) run: Option<PlainRun>,
    /// The cluster's name for other services.
    pub(super) cluster_arn: Option<&'a str>,
}

/// Tags by which policies know what is of the cluster.
fn tags(cluster: &str) -> Tags {
    [
        (format!("{}{cluster}", names::CLUSTER_PREFIX), "owned"),
        (names::CLUSTER_NAME.to_owned(), cluster),
        (names::NODEPOOL.to_owned(), NOBODY),
        (names::NODE_CLASS.to_owned(), NOBODY),
    ]
    .map(|(key, value)| (key, value.to_owned()))
    .into()
}

impl Ground<'_> {
    /// Tries everything out.
    pub(super) async fn try_all(&self, outcomes: &mut Outcomes) {
        let (of_ec2, of_others) = futures::join!(self.try_ec2(), self.try_others());
        for (action, error) in of_ec2 {
            note(outcomes, action, Err(&error));
        }
        for (action, answer) in of_others {
            note(outcomes, action, answer.as_ref().copied());
        }
        let has_profile = self.run.as_ref().is_some_and(|run| run.instance_profile.is_some());
        if has_profile && outcomes.get("ec2:RunInstances") == Some(&Outcome::Allowed) {
            // It would have been refused without it.
            outcomes.insert("iam:PassRole", Outcome::Allowed);
        }
    }

    async fn try_ec2(&self) -> Vec<(&'static str, Error)> {
        let ec2 = &self.services.ec2;
        let tried = join_all(self.trials().into_iter().map(|trial| async move {
            let action = trial.action();
            let answer = tokio::time::timeout(super::PATIENCE, ec2.try_out(&trial)).await;
            (action, answer.unwrap_or_else(|_| unanswered(action)))
        }));
        let fleet = async {
            let request = self.fleet()?;
            let action = "ec2:CreateFleet";
            let answer = patiently(action, ec2.create_fleet(&request)).await;
            // Nothing is launched: it was only tried.
            let accepted = || Error::new(action, "DryRunOperation", "");
            Some((action, answer.err().unwrap_or_else(accepted)))
        };
        let (mut tried, fleet) = futures::join!(tried, fleet);
        tried.extend(fleet);
        tried
    }

    fn trials(&self) -> Vec<Trial> {
        let cluster = &self.subject.cluster_name;
        let mut trials: Vec<Trial> = Listing::ALL.map(Trial::List).into();
        trials.push(Trial::CreateLaunchTemplate(tags(cluster)));
        if let Some(run) = &self.run {
            trials.push(Trial::RunInstances(PlainRun { tags: tags(cluster), ..run.clone() }));
        }
        if let Some(id) = self.instance {
            // One that it has already.
            let tag = [(names::CLUSTER_NAME.to_owned(), cluster.clone())].into();
            trials.push(Trial::CreateTags(id.to_owned(), tag));
            trials.push(Trial::TerminateInstances(id.to_owned()));
            trials.push(Trial::RebootInstances(id.to_owned()));
        }
        if let Some(template) = self.template {
            trials.push(Trial::DeleteLaunchTemplate(template.id.clone()));
        }
        trials
    }

    /// A fleet that is only tried; it needs a launch template and a subnet.
    fn fleet(&self) -> Option<FleetRequest> {
        let (template, run) = (self.template?, self.run.as_ref()?);
        let offer = FleetOverride {
            instance_type: run.instance_type.clone(),
            subnet_id: run.subnet_id.clone(),
            ..FleetOverride::default()
        };
        Some(FleetRequest {
            dry_run: true,
            context: None,
            templates: vec![FleetTemplate { name: template.name.clone(), overrides: vec![offer] }],
            purchase: FleetPurchase::OnDemand { prioritized: false },
            count: 1,
            tags: tags(&self.subject.cluster_name),
        })
    }

    async fn try_others(&self) -> Vec<(&'static str, Result<(), Error>)> {
        let Self { services, subject, .. } = self;
        let mut all = Vec::new();
        let answer = patiently("ssm:GetParameter", services.ssm.parameter(PARAMETER)).await;
        all.push(("ssm:GetParameter", answer.map(drop)));
        // Neither has an endpoint in networks that are isolated.
        if !subject.isolated_vpc {
            let path = cluster_path(&subject.region, &subject.cluster_name);
            let query = product(&subject.region);
            let (profile, profiles, products) = futures::join!(
                patiently("iam:GetInstanceProfile", services.iam.instance_profile(NOBODY)),
                patiently("iam:ListInstanceProfiles", services.iam.instance_profiles(&path)),
                patiently("pricing:GetProducts", services.pricing.products(&query)),
            );
            all.push(("iam:GetInstanceProfile", profile.map(drop)));
            all.push(("iam:ListInstanceProfiles", profiles.map(drop)));
            all.push(("pricing:GetProducts", products.map(drop)));
        }
        if let Some(arn) = self.cluster_arn.filter(|_| subject.zonal_shift) {
            let action = "arc-zonal-shift:GetManagedResource";
            all.push((action, patiently(action, services.zonal_shift.shifts(arn)).await.map(drop)));
        }
        all
    }

    /// Asks IAM about everything that was not tried; if it may not be asked, nothing is known.
    pub(super) async fn simulate(&self, identity: &CallerIdentity, outcomes: &mut Outcomes) {
        let Some(principal) = principal(&identity.arn) else { return };
        if self.subject.isolated_vpc {
            return;
        }
        let untried: Vec<Simulation> = POLICIES
            .iter()
            .flat_map(|policy| policy.actions)
            .filter(|action| action.need.of(self.subject) != Matter::NotAtAll)
            .filter(|action| !outcomes.contains_key(action.name))
            .filter_map(|action| {
                Some(Simulation {
                    principal: principal.clone(),
                    action: action.name,
                    resource: resource(action.name, identity, self.subject)?,
                    context: context(action.name, self.subject),
                })
            })
            .collect();
        let iam = &self.services.iam;
        // One after the other: IAM slows down who asks for many at once.
        for simulation in &untried {
            match patiently("iam:SimulatePrincipalPolicy", iam.simulate(simulation)).await {
                Ok(decision) => note_simulated(outcomes, simulation.action, decision),
                // It would be the same for the others.
                Err(_) => return,
            }
        }
    }
}

/// A question about a single product.
fn product(region: &str) -> ProductQuery {
    let filters = [
        ("regionCode", region),
        ("instanceType", "m5.large"),
        ("operatingSystem", "Linux"),
        ("preInstalledSw", "NA"),
        ("capacitystatus", "Used"),
        ("tenancy", "Shared"),
    ];
    ProductQuery { filters: filters.map(|(name, value)| (name.to_owned(), value.to_owned())).into() }
}

/// The user or role behind whom AWS takes us for; nothing for the account itself. Where a role is, is not told.
fn principal(arn: &str) -> Option<String> {
    let parts: Vec<&str> = arn.split(':').collect();
    let [_, partition, service, _, account, who] = parts[..] else { return None };
    match (service, who.split_once('/')?) {
        ("sts", ("assumed-role", role)) => {
            let name = role.split('/').next()?;
            Some(format!("arn:{partition}:iam::{account}:role/{name}"))
        }
        ("iam", ("user" | "role", _)) => Some(arn.to_owned()),
        _ => None,
    }
}

/// What an action would be about.
fn resource(action: &str, identity: &CallerIdentity, subject: &Subject) -> Option<String> {
    let partition = identity.arn.split(':').nth(1)?;
    let (account, region) = (&identity.account, &subject.region);
    let of_ec2 = |kind: &str| Some(format!("arn:{partition}:ec2:{region}:{account}:{kind}/{NOBODY}"));
    match action {
        "iam:PassRole" => {
            let role = subject.classes().iter().find_map(|class| class.spec.role.as_deref())?;
            Some(format!("arn:{partition}:iam::{account}:role/{role}"))
        }
        "ec2:CreateFleet" => of_ec2("fleet"),
        "ec2:DeleteLaunchTemplate" => of_ec2("launch-template"),
        _ if action.starts_with("ec2:") => of_ec2("instance"),
        _ if action.starts_with("iam:") => {
            let path = cluster_path(region, &subject.cluster_name);
            Some(format!("arn:{partition}:iam::{account}:instance-profile{path}{NOBODY}"))
        }
        _ => None,
    }
}

/// What would be known about a request: what it creates and what it changes carry our tags.
fn context(action: &str, subject: &Subject) -> Vec<(String, Vec<String>)> {
    let mut tags = tags(&subject.cluster_name);
    tags.insert(names::REGION.to_owned(), subject.region.clone());
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in &tags {
        for kind in ["aws:RequestTag", "aws:ResourceTag"] {
            all.insert(format!("{kind}/{key}"), vec![value.clone()]);
        }
    }
    all.insert("aws:RequestedRegion".to_owned(), vec![subject.region.clone()]);
    match action {
        "iam:PassRole" => {
            all.insert("iam:PassedToService".to_owned(), vec!["ec2.amazonaws.com".to_owned()]);
        }
        "ec2:CreateTags" => {
            let keys = [names::CLUSTER_NAME, names::NODE_CLAIM, names::NAME];
            all.insert("aws:TagKeys".to_owned(), keys.map(str::to_owned).into());
        }
        _ => {}
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_belong_to_the_role_and_not_to_its_session() {
        for (arn, expected) in [
            (
                "arn:aws-cn:sts::1:assumed-role/controller/eks-session",
                Some("arn:aws-cn:iam::1:role/controller"),
            ),
            ("arn:aws:iam::1:user/team/me", Some("arn:aws:iam::1:user/team/me")),
            ("arn:aws:iam::1:root", None),
            ("nonsense", None),
            ("", None),
        ] {
            assert_eq!(principal(arn).as_deref(), expected, "{arn}");
        }
    }

    #[test]
    fn iam_is_told_what_our_policies_look_at() {
        let subject = Subject { cluster_name: "c".to_owned(), region: "r".to_owned(), ..Subject::default() };
        let known = context("iam:PassRole", &subject);
        for key in [
            "aws:RequestTag/kubernetes.io/cluster/c",
            "aws:ResourceTag/karpenter.sh/nodepool",
            "aws:RequestTag/topology.kubernetes.io/region",
            "iam:PassedToService",
        ] {
            assert!(known.iter().any(|(name, _)| name == key), "{key}");
        }
        let identity =
            CallerIdentity { account: "1".to_owned(), arn: "arn:aws:sts::1:assumed-role/c/s".to_owned() };
        assert_eq!(
            resource("iam:DeleteInstanceProfile", &identity, &subject).as_deref(),
            Some("arn:aws:iam::1:instance-profile/karpenter/r/c/karpenter-doctor")
        );
        assert_eq!(resource("iam:PassRole", &identity, &subject), None, "nobody knows the role");
        assert_eq!(
            resource("ec2:TerminateInstances", &identity, &subject).as_deref(),
            Some("arn:aws:ec2:r:1:instance/karpenter-doctor")
        );
    }
}
