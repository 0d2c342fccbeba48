//! The report of a smoke test: what was done, how long it took, what went wrong and what is left.

use std::fmt::Write as _;

use serde::Serialize;

/// A report that can be attached to an issue. It names no account, and holds no secret.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) version: &'static str,
    pub(super) provider: &'static str,
    pub(super) kubernetes: String,
    pub(super) node_pool: String,
    pub(super) node_class: String,
    pub(super) started: String,
    pub(super) steps: Vec<Step>,
    pub(super) nodes: Vec<NodeReport>,
    /// Conditions and events that say why a step failed.
    pub(super) hints: Vec<String>,
}

/// A step of the test.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) seconds: f64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// A node that was launched. Times are seconds since its pod was created.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeReport {
    pub(super) node_claim: String,
    pub(super) capacity_type: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) provider_id: String,
    pub(super) launched: Option<i64>,
    pub(super) registered: Option<i64>,
    pub(super) initialized: Option<i64>,
    pub(super) pod_running: Option<i64>,
}

impl Report {
    /// Whether every step went well; the last one is that nothing is left.
    pub(super) fn has_passed(&self) -> bool {
        self.steps.iter().all(|step| step.error.is_none())
    }

    /// The report in Markdown, as issues show it.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "# Karpenter smoke test: {}\n\n\
             Karpenter {}, provider {}, Kubernetes {}, NodePool {}, NodeClass {}, {}\n\n\
             | step | seconds | result |\n|---|---|---|\n",
            if self.has_passed() { "passed" } else { "failed" },
            self.version,
            self.provider,
            self.kubernetes,
            self.node_pool,
            self.node_class,
            self.started,
        );
        for Step { name, seconds, error } in &self.steps {
            let result = error.as_deref().unwrap_or("ok");
            let _ = writeln!(text, "| {name} | {seconds:.1} | {} |", cell(result));
        }
        if !self.nodes.is_empty() {
            text.push_str(
                "\nSeconds since the pod was created:\n\n\
                 | NodeClaim | instance | launched | registered | initialized | pod runs |\n|---|---|---|---|---|---|\n",
            );
        }
        for node in &self.nodes {
            let at = |seconds: Option<i64>| seconds.map_or("never".to_owned(), |seconds| seconds.to_string());
            let NodeReport { node_claim, capacity_type, instance_type, zone, provider_id, .. } = node;
            let _ = writeln!(
                text,
                "| {node_claim} | {instance_type}, {capacity_type}, {zone}, {provider_id} | {} | {} | {} | {} |",
                at(node.launched),
                at(node.registered),
                at(node.initialized),
                at(node.pod_running)
            );
        }
        if !self.hints.is_empty() {
            text.push_str("\nConditions and events:\n\n");
        }
        for hint in &self.hints {
            let _ = writeln!(text, "- {}", hint.replace('\n', " "));
        }
        text
    }
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            version: "0.1.0",
            provider: "aws",
            kubernetes: "v1.36.3".into(),
            node_pool: "karpenter-smoke-1a2b".into(),
            node_class: "default".into(),
            started: "2026-11-18T16:00:00Z".into(),
            steps: vec![Step { name: "nodes".into(), seconds: 41.25, error: None }],
            nodes: vec![NodeReport { launched: Some(3), ..NodeReport::default() }],
            hints: Vec::new(),
        }
    }

    #[test]
    fn a_report_has_passed_only_if_every_step_did() {
        assert!(report().has_passed());
        assert!(report().markdown().starts_with("# Karpenter smoke test: passed\n"));
        let said = Report { hints: vec!["event of a:\nno capacity".into()], ..report() };
        assert!(said.has_passed() && said.markdown().ends_with("\n- event of a: no capacity\n"));
        let mut failed = report();
        failed.steps[0].error = Some("no | node\ncame".into());
        assert!(!failed.has_passed());
        assert!(failed.markdown().contains("| nodes | 41.2 | no \\| node came |"), "{}", failed.markdown());
    }
}
