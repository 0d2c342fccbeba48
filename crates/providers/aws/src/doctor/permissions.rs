//! Which permissions are missing: what an answer says about the action that was tried, and what becomes of all of
//! them in the report.

use std::collections::{BTreeMap, BTreeSet};

use cloud::doctor::Check;

use super::Subject;
use super::actions::{Action, Matter, POLICIES, Policy};
use crate::port::{Decision, Error};

/// What is known about an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is allowed.
    Allowed,
    /// It is not, and why.
    Denied(String),
    /// Nobody knows, and why.
    Unknown(String),
}

/// What is known, by action.
pub(super) type Outcomes = BTreeMap<&'static str, Outcome>;

/// What services answer when we may ask, but asked for something that cannot be.
const ASKED_FOR_NOTHING: [&str; 4] =
    ["ReceiptHandleIsInvalid", "InvalidIdFormat", "ResourceNotFoundException", "InvalidParameterValue"];

/// Notes what an answer says about an action. A refusal may be about another action that belongs to it, such as
/// `iam:PassRole` when an instance is run.
pub(super) fn note(outcomes: &mut Outcomes, action: &'static str, answer: Result<(), &Error>) {
    let outcome = match answer {
        Ok(()) => Outcome::Allowed,
        Err(error) if error.is_dry_run_success() || error.is_not_found() => Outcome::Allowed,
        Err(error) if error.is_denied() => {
            let denied = named(&error.message).unwrap_or(action);
            outcomes.insert(denied, Outcome::Denied(why(&error.message)));
            if denied == action {
                return;
            }
            Outcome::Unknown(format!("{denied} is refused first"))
        }
        // To run an instance, EC2 may look at what is asked for before it looks at who asks.
        Err(error) if ASKED_FOR_NOTHING.contains(&error.code.as_str()) && !action.starts_with("ec2:") => {
            Outcome::Allowed
        }
        Err(error) => Outcome::Unknown(error.to_string()),
    };
    outcomes.insert(action, outcome);
}

/// Notes what policies say about an action that was not tried.
pub(super) fn note_simulated(outcomes: &mut Outcomes, action: &'static str, decision: Decision) {
    let outcome = match decision {
        Decision::Allowed => Outcome::Allowed,
        Decision::Forbidden => Outcome::Denied("a policy forbids it".to_owned()),
        Decision::NotAllowed => Outcome::Denied("no policy allows it".to_owned()),
    };
    outcomes.insert(action, outcome);
}

/// The action that a refusal names, if we know it.
fn named(message: &str) -> Option<&'static str> {
    let named = message.split_once("not authorized to perform: ")?.1;
    let named = named.split(|c: char| c.is_whitespace() || c == ',').next()?;
    all().map(|action| action.name).find(|name| *name == named)
}

fn all() -> impl Iterator<Item = &'static Action> {
    POLICIES.iter().flat_map(|policy| policy.actions)
}

/// Why something was refused, without what only AWS can read.
fn why(message: &str) -> String {
    let message = message.split("Encoded authorization failure message").next().unwrap_or_default();
    let reason = message.split_once(" because ").map(|(_, reason)| reason.trim());
    let reason = reason.or_else(|| message.split_once("perform: ").map(|(_, rest)| rest.trim()));
    reason.unwrap_or(message).trim().trim_end_matches('.').to_owned()
}

/// What is said about permissions: what is missing, each alone; what could not be found out, by policy; and how much
/// is allowed.
pub(super) fn report(outcomes: &Outcomes, subject: &Subject) -> Vec<Check> {
    let mut checks = Vec::new();
    for policy in &POLICIES {
        checks.extend(of_policy(policy, outcomes, subject));
    }
    checks
}

fn of_policy(policy: &Policy, outcomes: &Outcomes, subject: &Subject) -> Vec<Check> {
    let mut checks = Vec::new();
    let (mut allowed, mut unknown): (usize, Vec<(&str, &str)>) = (0, Vec::new());
    for action in policy.actions {
        let matter = action.need.of(subject);
        if matter == Matter::NotAtAll {
            continue;
        }
        match outcomes.get(action.name) {
            Some(Outcome::Allowed) => allowed += 1,
            Some(Outcome::Denied(why)) => checks.push(missing(policy, action, matter, why)),
            Some(Outcome::Unknown(why)) => unknown.push((action.name, why)),
            None => unknown.push((action.name, UNTRIED)),
        }
    }
    if allowed > 0 {
        let message = if allowed == 1 { "1 action is" } else { &format!("{allowed} actions are") };
        checks.insert(0, Check::good(format!("policy {}", policy.name), format!("{message} allowed")));
    }
    // What has one reason is one line.
    let reasons: BTreeSet<&str> = unknown.iter().map(|(_, why)| *why).collect();
    for reason in reasons {
        let names: Vec<&str> =
            unknown.iter().filter(|(_, why)| *why == reason).map(|(name, _)| *name).collect();
        let about = format!("policy {}", policy.name);
        let message = format!("nobody knows whether {} may be called: {reason}", names.join(", "));
        checks.push(Check::warning(about, message, advice_for_unknown(reason)));
    }
    checks
}

/// What is said about an action that nobody tried.
pub(super) const UNTRIED: &str = "that cannot be checked without doing it";

fn advice_for_unknown(reason: &str) -> &'static str {
    if reason == UNTRIED { "the policy doctor allows to ask IAM instead" } else { "" }
}

fn missing(policy: &Policy, action: &Action, matter: Matter, why: &str) -> Check {
    let about = format!("permission {}", action.name);
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let message = format!("missing{why}, so {}", action.without);
    let advice = format!(
        "compare the controller's role with deploy/aws/policies/{}.json, and look at permission boundaries and service control policies",
        policy.name
    );
    match matter {
        Matter::Much => Check::bad(about, message, advice),
        Matter::Little | Matter::NotAtAll => Check::warning(about, message, advice),
    }
}

#[cfg(test)]
mod tests {
    use cloud::doctor::Level;

    use super::*;

    fn error(operation: &'static str, code: &str, message: &str) -> Error {
        Error::new(operation, code, message)
    }

    fn noted(action: &'static str, code: &str, message: &str) -> Outcomes {
        let mut outcomes = Outcomes::new();
        note(&mut outcomes, action, Err(&error(action, code, message)));
        outcomes
    }

    #[test]
    fn who_is_not_told_that_it_is_forbidden_is_allowed() {
        for (action, code) in [
            ("ec2:CreateTags", "DryRunOperation"),
            ("iam:GetInstanceProfile", "NoSuchEntity"),
            ("sqs:DeleteMessage", "ReceiptHandleIsInvalid"),
            ("ssm:GetParameter", "ParameterNotFound"),
        ] {
            assert_eq!(noted(action, code, "")[action], Outcome::Allowed, "{action}");
        }
        assert!(matches!(
            noted("ec2:RunInstances", "InvalidParameterValue", "")["ec2:RunInstances"],
            Outcome::Unknown(_)
        ));
        assert!(matches!(noted("eks:DescribeCluster", "", "")["eks:DescribeCluster"], Outcome::Unknown(_)));
    }

    #[test]
    fn a_refusal_says_why_and_may_be_about_another_action() {
        let message = "You are not authorized to perform this operation. User: arn:aws:sts::1:assumed-role/c/s is not authorized to perform: iam:PassRole on resource: arn:aws:iam::1:role/n because no identity-based policy allows the iam:PassRole action. Encoded authorization failure message: AbCd";
        let outcomes = noted("ec2:RunInstances", "UnauthorizedOperation", message);
        let why = "no identity-based policy allows the iam:PassRole action";
        assert_eq!(outcomes["iam:PassRole"], Outcome::Denied(why.to_owned()));
        assert!(
            matches!(&outcomes["ec2:RunInstances"], Outcome::Unknown(why) if why.contains("iam:PassRole"))
        );
        let plain = noted(
            "ec2:CreateTags",
            "UnauthorizedOperation",
            "You are not authorized to perform this operation.",
        );
        assert_eq!(
            plain["ec2:CreateTags"],
            Outcome::Denied("You are not authorized to perform this operation".to_owned())
        );
    }

    #[test]
    fn exactly_what_is_missing_is_listed() {
        let mut outcomes: Outcomes = all().map(|action| (action.name, Outcome::Allowed)).collect();
        let subject = Subject { interruption_queue: Some("q".to_owned()), ..Subject::default() };
        assert!(report(&outcomes, &subject).iter().all(|check| check.level == Level::Good));
        let denied = || Outcome::Denied("no policy allows it".to_owned());
        outcomes.insert("ec2:CreateFleet", denied());
        outcomes.insert("pricing:GetProducts", denied());
        outcomes.insert("arc-zonal-shift:GetManagedResource", denied());
        outcomes.remove("iam:PassRole");
        outcomes.remove("iam:TagInstanceProfile");
        let found = report(&outcomes, &subject);
        let lines: Vec<(Level, &str)> = found
            .iter()
            .filter(|check| check.level != Level::Good)
            .map(|check| (check.level, check.about.as_str()))
            .collect();
        assert_eq!(
            lines,
            [
                (Level::Bad, "permission ec2:CreateFleet"),
                (Level::Warning, "policy iam-integration"),
                (Level::Warning, "permission pricing:GetProducts"),
            ]
        );
        let missing = found.iter().find(|check| check.level == Level::Bad).unwrap();
        assert_eq!(missing.message, "missing (no policy allows it), so nothing can be launched");
        assert!(missing.advice.contains("deploy/aws/policies/node-lifecycle.json"));
        let unknown = found
            .iter()
            .find(|check| check.about == "policy iam-integration" && check.level == Level::Warning);
        assert!(unknown.unwrap().message.contains("iam:PassRole, iam:TagInstanceProfile"));
    }

    #[test]
    fn what_policies_say_counts_where_nothing_was_tried() {
        let mut outcomes = Outcomes::new();
        note_simulated(&mut outcomes, "iam:PassRole", Decision::Forbidden);
        note_simulated(&mut outcomes, "iam:TagInstanceProfile", Decision::Allowed);
        assert_eq!(outcomes["iam:PassRole"], Outcome::Denied("a policy forbids it".to_owned()));
        assert_eq!(outcomes["iam:TagInstanceProfile"], Outcome::Allowed);
    }
}
