//! The part of kube-scheduler's configuration that placement must know: constraints for pods that have none of
//! their own. Entry: [`SchedulerConfig::parse`].

use api::validation::kubernetes;
use serde::Deserialize;

use crate::objects::pod::TopologySpread;
use crate::objects::selector::LabelSelector;

/// What is the same for all pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// How pods are spread that do not say so themselves.
    pub default_spreads: Vec<TopologySpread>,
}

/// Why a scheduler configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerConfigError {
    /// It cannot be read.
    #[error("decoding scheduler config, {0}")]
    Decoding(String),
    /// A constraint is wrong.
    #[error("validating scheduler config, podTopologySpread.defaultConstraints[{position}]{problem}")]
    Constraint {
        /// Which one.
        position: usize,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Document {
    pod_topology_spread: Option<PodTopologySpread>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PodTopologySpread {
    default_constraints: Vec<Constraint>,
}

/// A constraint of which every field must be known.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Constraint {
    max_skew: i32,
    topology_key: String,
    when_unsatisfiable: String,
    label_selector: Option<LabelSelector>,
    min_domains: Option<i32>,
    match_label_keys: Vec<String>,
    node_affinity_policy: Option<Box<str>>,
    node_taints_policy: Option<Box<str>>,
}

impl SchedulerConfig {
    /// Reads a configuration in YAML or JSON; empty text configures nothing.
    pub fn parse(text: &str) -> Result<Self, SchedulerConfigError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let document: Document =
            serde_saphyr::from_str_with_options(text, serde_saphyr::options! { with_snippet: false })
                .map_err(|error| SchedulerConfigError::Decoding(error.to_string()))?;
        let constraints = document.pod_topology_spread.unwrap_or_default().default_constraints;
        for (position, constraint) in constraints.iter().enumerate() {
            constraint
                .validate(&constraints[..position])
                .map_err(|problem| SchedulerConfigError::Constraint { position, problem })?;
        }
        Ok(Self { default_spreads: constraints.into_iter().map(Constraint::complete).collect() })
    }
}

impl Constraint {
    fn validate(&self, earlier: &[Self]) -> Result<(), String> {
        if self.max_skew <= 0 {
            return Err(".maxSkew must be greater than 0".to_owned());
        }
        if self.topology_key.is_empty() {
            return Err(".topologyKey must be set".to_owned());
        }
        let wrong = kubernetes::qualified_name(&self.topology_key);
        if !wrong.is_empty() {
            let (key, why) = (&self.topology_key, wrong.join(", "));
            return Err(format!(".topologyKey {key:?} is not a valid label name, {why}"));
        }
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&&*self.when_unsatisfiable) {
            let found = &self.when_unsatisfiable;
            return Err(format!(
                r#".whenUnsatisfiable {found:?} must be one of "DoNotSchedule" or "ScheduleAnyway""#
            ));
        }
        if self.label_selector.is_some() {
            return Err(".labelSelector must not be set, as selectors are deduced for each pod".to_owned());
        }
        if !self.match_label_keys.is_empty() {
            return Err(
                ".matchLabelKeys must not be set, as it has no effect on default constraints".to_owned()
            );
        }
        let (key, when) = (&self.topology_key, &self.when_unsatisfiable);
        let same = earlier.iter().position(|e| e.topology_key == *key && e.when_unsatisfiable == *when);
        match same {
            Some(same) => Err(format!(" is a duplicate of [{same}], {{{key}, {when}}}")),
            None => Ok(()),
        }
    }

    fn complete(self) -> TopologySpread {
        TopologySpread {
            max_skew: self.max_skew,
            topology_key: self.topology_key.into(),
            when_unsatisfiable: self.when_unsatisfiable.into(),
            label_selector: None,
            min_domains: self.min_domains,
            match_label_keys: self.match_label_keys.into_iter().map(Into::into).collect(),
            node_affinity_policy: self.node_affinity_policy,
            node_taints_policy: self.node_taints_policy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(constraints: &str, expected: &str) {
        let text = format!("podTopologySpread:\n  defaultConstraints: [{constraints}]\n");
        let result = SchedulerConfig::parse(&text);
        let text = result.map_or_else(
            |error| error.to_string(),
            |config| format!("{} constraints", config.default_spreads.len()),
        );
        assert_eq!(
            text.strip_prefix("validating scheduler config, podTopologySpread.").unwrap_or(&text),
            expected
        );
    }

    const ZONE: &str = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}";

    #[test]
    fn nothing_configures_nothing() {
        assert_eq!(SchedulerConfig::parse(""), Ok(SchedulerConfig::default()));
        assert_eq!(SchedulerConfig::parse("{}"), Ok(SchedulerConfig::default()));
    }

    #[test]
    fn constraints_are_validated() {
        check(ZONE, "1 constraints");
        check(&format!("{ZONE}, {}", ZONE.replace("DoNotSchedule", "ScheduleAnyway")), "2 constraints");
        check(&ZONE.replace('1', "0"), "defaultConstraints[0].maxSkew must be greater than 0");
        check("{maxSkew: 1}", "defaultConstraints[0].topologyKey must be set");
        check(
            &ZONE.replace("DoNot", "Never"),
            r#"defaultConstraints[0].whenUnsatisfiable "NeverSchedule" must be one of "DoNotSchedule" or "ScheduleAnyway""#,
        );
        check(
            &ZONE.replace('}', ", labelSelector: {}}"),
            "defaultConstraints[0].labelSelector must not be set, as selectors are deduced for each pod",
        );
        check(
            &ZONE.replace('}', ", matchLabelKeys: [a]}"),
            "defaultConstraints[0].matchLabelKeys must not be set, as it has no effect on default constraints",
        );
        check(
            &format!("{ZONE}, {ZONE}"),
            "defaultConstraints[1] is a duplicate of [0], {zone, DoNotSchedule}",
        );
    }

    #[test]
    fn unknown_fields_are_refused() {
        let error = SchedulerConfig::parse("podTopologySpread: {constraints: []}").unwrap_err().to_string();
        assert!(error.starts_with("decoding scheduler config, ") && error.contains("constraints"), "{error}");
    }
}
