//! The other services of the double.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;

use super::{Double, World};
use crate::port::{
    Cluster, Decision, Eks, Error, Iam, InstanceProfile, Message, Pricing, ProductQuery, QueueAttributes,
    Simulation, Sqs, Ssm, Tags, ZonalShift, ZonalShifts,
};

type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// How often a queue looks for messages while somebody waits for them.
const LOOKS: u32 = 20;
/// How long it waits in between.
const LOOK: Duration = Duration::from_secs(1);
/// How many messages can be deleted at once.
const MOST_AT_ONCE: usize = 10;
/// How long a message that was received is not shown again.
const INVISIBLE: Duration = Duration::from_secs(20);

fn no_entity(operation: &'static str, what: &str) -> Error {
    Error::new(operation, "NoSuchEntity", &format!("The {what} cannot be found."))
}

impl Iam for Double {
    fn instance_profile<'a>(&'a self, name: &'a str) -> Answer<'a, InstanceProfile> {
        let operation = "iam:GetInstanceProfile";
        self.answer(operation, name.to_owned(), move |world| {
            let found = world.profiles.get(name).cloned();
            found.ok_or_else(|| no_entity(operation, &format!("instance profile {name}")))
        })
        .boxed()
    }

    fn create_instance_profile<'a>(&'a self, name: &'a str, path: &'a str, tags: &'a Tags) -> Answer<'a, ()> {
        let operation = "iam:CreateInstanceProfile";
        self.answer(operation, name.to_owned(), move |world| {
            if world.profiles.contains_key(name) {
                return Err(Error::new(operation, "EntityAlreadyExists", "It exists."));
            }
            let profile = InstanceProfile { name: name.to_owned(), path: path.to_owned(), roles: Vec::new() };
            world.profiles.insert(name.to_owned(), profile);
            world.profile_tags.insert(name.to_owned(), tags.clone());
            Ok(())
        })
        .boxed()
    }

    fn add_role<'a>(&'a self, profile: &'a str, role: &'a str) -> Answer<'a, ()> {
        let operation = "iam:AddRoleToInstanceProfile";
        self.answer(operation, format!("{profile} {role}"), move |world| {
            if !world.roles.contains(role) {
                return Err(no_entity(operation, &format!("role with name {role}")));
            }
            let found = world.profiles.get_mut(profile);
            let found = found.ok_or_else(|| no_entity(operation, &format!("instance profile {profile}")))?;
            if !found.roles.is_empty() {
                return Err(Error::new(operation, "LimitExceeded", "There is a role already."));
            }
            found.roles.push(role.to_owned());
            Ok(())
        })
        .boxed()
    }

    fn remove_role<'a>(&'a self, profile: &'a str, role: &'a str) -> Answer<'a, ()> {
        let operation = "iam:RemoveRoleFromInstanceProfile";
        self.answer(operation, format!("{profile} {role}"), move |world| {
            let found = world.profiles.get_mut(profile);
            let found = found.ok_or_else(|| no_entity(operation, &format!("instance profile {profile}")))?;
            found.roles.retain(|known| known != role);
            Ok(())
        })
        .boxed()
    }

    fn delete_instance_profile<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        let operation = "iam:DeleteInstanceProfile";
        self.answer(operation, name.to_owned(), move |world| {
            let known = world.profiles.get(name);
            let known = known.ok_or_else(|| no_entity(operation, &format!("instance profile {name}")))?;
            if !known.roles.is_empty() {
                return Err(Error::new(operation, "DeleteConflict", "It has a role."));
            }
            world.profiles.remove(name);
            Ok(())
        })
        .boxed()
    }

    fn instance_profiles<'a>(&'a self, path_prefix: &'a str) -> Answer<'a, Vec<InstanceProfile>> {
        self.answer("iam:ListInstanceProfiles", path_prefix.to_owned(), move |world| {
            let fits = |profile: &&InstanceProfile| profile.path.starts_with(path_prefix);
            Ok(world.profiles.values().filter(fits).cloned().collect())
        })
        .boxed()
    }

    fn role<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        let operation = "iam:GetRole";
        self.answer(operation, name.to_owned(), move |world| {
            let is_known = world.roles.contains(name);
            is_known.then_some(()).ok_or_else(|| no_entity(operation, &format!("role with name {name}")))
        })
        .boxed()
    }

    fn simulate<'a>(&'a self, request: &'a Simulation) -> Answer<'a, Decision> {
        self.answer("iam:SimulatePrincipalPolicy", request.action.to_owned(), move |world| {
            Ok(world.decisions.get(request.action).copied().unwrap_or(Decision::Allowed))
        })
        .boxed()
    }
}

impl Eks for Double {
    fn cluster<'a>(&'a self, name: &'a str) -> Answer<'a, Cluster> {
        self.answer("eks:DescribeCluster", name.to_owned(), |world| Ok(world.cluster.clone())).boxed()
    }
}

impl Ssm for Double {
    fn parameter<'a>(&'a self, name: &'a str) -> Answer<'a, String> {
        let operation = "ssm:GetParameter";
        self.answer(operation, name.to_owned(), move |world| {
            if world.secret_parameters.contains(name) {
                let message = format!("not authorized to perform: ssm:GetParameter on {name}");
                return Err(Error::new(operation, "AccessDeniedException", &message));
            }
            let found = world.parameters.get(name).cloned();
            found.ok_or_else(|| Error::new(operation, "ParameterNotFound", name))
        })
        .boxed()
    }
}

/// The messages that are received now, if there is a queue.
fn visible(world: &mut World, now: Timestamp) -> Option<Vec<Message>> {
    let invisible = &mut world.invisible;
    invisible.retain(|_, until| *until > now);
    let waiting = world.queue.as_ref()?.iter().filter(|message| !invisible.contains_key(&message.receipt));
    let found: Vec<Message> = waiting.take(10).cloned().collect();
    invisible.extend(found.iter().map(|message| (message.receipt.clone(), now + INVISIBLE)));
    Some(found)
}

impl Sqs for Double {
    fn queue_url<'a>(&'a self, name: &'a str) -> Answer<'a, String> {
        let operation = "sqs:GetQueueUrl";
        self.answer(operation, name.to_owned(), move |world| match &world.queue {
            Some(_) => Ok(format!("https://queue/{name}")),
            None => Err(Error::new(operation, "QueueDoesNotExist", name)),
        })
        .boxed()
    }

    fn receive<'a>(&'a self, queue_url: &'a str) -> Answer<'a, Vec<Message>> {
        let operation = "sqs:ReceiveMessage";
        async move {
            self.answer(operation, queue_url.to_owned(), |_| Ok(())).await?;
            for _ in 0..LOOKS {
                let found = self.change(|world| visible(world, self.clock.now()));
                let found = found.ok_or_else(|| Error::new(operation, "QueueDoesNotExist", queue_url))?;
                if !found.is_empty() {
                    return Ok(found);
                }
                tokio::time::sleep(LOOK).await;
            }
            Ok(Vec::new())
        }
        .boxed()
    }

    fn peek<'a>(&'a self, queue_url: &'a str) -> Answer<'a, ()> {
        self.answer("sqs:ReceiveMessage", format!("peek {queue_url}"), |_| Ok(())).boxed()
    }

    fn delete<'a>(&'a self, _: &'a str, receipts: &'a [String]) -> Answer<'a, Vec<(String, Error)>> {
        let operation = "sqs:DeleteMessage";
        self.answer(operation, format!("{} messages", receipts.len()), move |world| {
            if receipts.len() > MOST_AT_ONCE {
                return Err(Error::new(operation, "TooManyEntriesInBatchRequest", "at most ten"));
            }
            let mut wrong = Vec::new();
            for receipt in receipts {
                let at = world.queue.iter().flatten().position(|message| &message.receipt == receipt);
                // What was received is at the front, also of a long queue.
                if let (Some(at), Some(queue)) = (at, &mut world.queue) {
                    queue.remove(at);
                } else {
                    let message = "there is no such receipt";
                    wrong.push((receipt.clone(), Error::new(operation, "ReceiptHandleIsInvalid", message)));
                }
            }
            Ok(wrong)
        })
        .boxed()
    }

    fn attributes<'a>(&'a self, queue_url: &'a str) -> Answer<'a, QueueAttributes> {
        let now = self.clock.now();
        self.answer("sqs:GetQueueAttributes", queue_url.to_owned(), move |world| {
            let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
            let is_hidden =
                |message: &&Message| world.invisible.get(&message.receipt).is_some_and(|until| *until > now);
            let all = world.queue.as_ref().map_or(0, std::collections::VecDeque::len);
            let in_flight = world.queue.iter().flatten().filter(is_hidden).count();
            Ok(QueueAttributes {
                waiting: count(all - in_flight),
                in_flight: count(in_flight),
                ..world.queue_attributes.clone()
            })
        })
        .boxed()
    }
}

impl Pricing for Double {
    fn products<'a>(&'a self, query: &'a ProductQuery) -> Answer<'a, Vec<String>> {
        let is_shared = query.filters.iter().any(|(_, value)| value == "Shared");
        self.answer("pricing:GetProducts", format!("shared={is_shared}"), move |world| {
            Ok(world.products[usize::from(!is_shared)].clone())
        })
        .boxed()
    }
}

impl ZonalShift for Double {
    fn shifts<'a>(&'a self, cluster_arn: &'a str) -> Answer<'a, Vec<ZonalShifts>> {
        let operation = "arc-zonal-shift:GetManagedResource";
        self.answer(operation, cluster_arn.to_owned(), |world| Ok(world.shifts.clone())).boxed()
    }
}
