//! IAM: instance profiles.

use aws::port::{Decision, Error, Iam, InstanceProfile, Simulation, Tags};
use aws_sdk_iam::types::{ContextEntry, ContextKeyTypeEnum, PolicyEvaluationDecisionType, Tag};
use futures::FutureExt as _;

use crate::Answer;
use crate::error::{error, incomplete, unusable};
use crate::pages;

const GET: &str = "iam:GetInstanceProfile";
const CREATE: &str = "iam:CreateInstanceProfile";
const ADD_ROLE: &str = "iam:AddRoleToInstanceProfile";
const REMOVE_ROLE: &str = "iam:RemoveRoleFromInstanceProfile";
const DELETE: &str = "iam:DeleteInstanceProfile";
const LIST: &str = "iam:ListInstanceProfiles";
const GET_ROLE: &str = "iam:GetRole";
const SIMULATE: &str = "iam:SimulatePrincipalPolicy";

/// IAM.
pub(crate) struct Client(pub(crate) aws_sdk_iam::Client);

impl Iam for Client {
    fn instance_profile<'a>(&'a self, name: &'a str) -> Answer<'a, InstanceProfile> {
        async move {
            let answer = self.0.get_instance_profile().instance_profile_name(name).send().await;
            let answer = answer.map_err(|cause| error(GET, &cause))?;
            answer.instance_profile.map(profile).ok_or_else(|| incomplete(GET, "instance profile"))
        }
        .boxed()
    }

    fn create_instance_profile<'a>(&'a self, name: &'a str, path: &'a str, all: &'a Tags) -> Answer<'a, ()> {
        async move {
            let request = self.0.create_instance_profile().instance_profile_name(name).path(path);
            let answer = request.set_tags(Some(tags(all)?)).send().await;
            answer.map(drop).map_err(|cause| error(CREATE, &cause))
        }
        .boxed()
    }

    fn add_role<'a>(&'a self, profile: &'a str, role: &'a str) -> Answer<'a, ()> {
        async move {
            let request = self.0.add_role_to_instance_profile().instance_profile_name(profile);
            request.role_name(role).send().await.map(drop).map_err(|cause| error(ADD_ROLE, &cause))
        }
        .boxed()
    }

    fn remove_role<'a>(&'a self, profile: &'a str, role: &'a str) -> Answer<'a, ()> {
        async move {
            let request = self.0.remove_role_from_instance_profile().instance_profile_name(profile);
            request.role_name(role).send().await.map(drop).map_err(|cause| error(REMOVE_ROLE, &cause))
        }
        .boxed()
    }

    fn delete_instance_profile<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        async move {
            let answer = self.0.delete_instance_profile().instance_profile_name(name).send().await;
            answer.map(drop).map_err(|cause| error(DELETE, &cause))
        }
        .boxed()
    }

    fn instance_profiles<'a>(&'a self, path_prefix: &'a str) -> Answer<'a, Vec<InstanceProfile>> {
        async move {
            let request = self.0.list_instance_profiles().path_prefix(path_prefix);
            let found = request.into_paginator().send();
            let all = pages::all(LIST, found, |page| page.instance_profiles.into_iter().map(profile));
            // Who deletes what is listed here must not rely on the prefix being looked at.
            let mut all = all.await?;
            all.retain(|profile| profile.path.starts_with(path_prefix));
            Ok(all)
        }
        .boxed()
    }

    fn role<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        async move {
            let answer = self.0.get_role().role_name(name).send().await;
            answer.map(drop).map_err(|cause| error(GET_ROLE, &cause))
        }
        .boxed()
    }

    fn simulate<'a>(&'a self, request: &'a Simulation) -> Answer<'a, Decision> {
        async move {
            let entries = request.context.iter().map(|(key, values)| entry(key, values)).collect();
            let asked = self
                .0
                .simulate_principal_policy()
                .policy_source_arn(&request.principal)
                .action_names(request.action)
                .resource_arns(&request.resource)
                .set_context_entries(Some(entries));
            let answer = asked.send().await.map_err(|cause| error(SIMULATE, &cause))?;
            let result = answer.evaluation_results.unwrap_or_default().into_iter().next();
            let result = result.ok_or_else(|| incomplete(SIMULATE, "result"))?;
            Ok(match result.eval_decision {
                PolicyEvaluationDecisionType::Allowed => Decision::Allowed,
                PolicyEvaluationDecisionType::ExplicitDeny => Decision::Forbidden,
                _ => Decision::NotAllowed,
            })
        }
        .boxed()
    }
}

/// What is known about a request that is not made.
fn entry(key: &str, values: &[String]) -> ContextEntry {
    let kind = if values.len() == 1 { ContextKeyTypeEnum::String } else { ContextKeyTypeEnum::StringList };
    ContextEntry::builder()
        .context_key_name(key)
        .set_context_key_values(Some(values.to_vec()))
        .context_key_type(kind)
        .build()
}

fn profile(described: aws_sdk_iam::types::InstanceProfile) -> InstanceProfile {
    InstanceProfile {
        name: described.instance_profile_name,
        path: described.path,
        roles: described.roles.into_iter().map(|role| role.role_name).collect(),
    }
}

fn tags(all: &Tags) -> Result<Vec<Tag>, Error> {
    let tag = |(key, value): (&String, &String)| {
        Tag::builder().key(key).value(value).build().map_err(|cause| unusable(CREATE, &cause))
    };
    all.iter().map(tag).collect()
}
