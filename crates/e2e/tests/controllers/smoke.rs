//! `karpenter smoke` as a process of its own, beside a controller.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::cell::RefCell;
use std::fs;

use e2e::Process;
use serde_json::Value;
use tempfile::TempDir;

use crate::ours::ours;
use crate::real::Real;

/// A smoke test that is under way.
pub(crate) struct Smoke {
    process: RefCell<Process>,
    folder: TempDir,
}

impl Smoke {
    /// Starts it with the permissions and settings of an administrator.
    pub(crate) fn start(
        real: &Real,
        provider: &str,
        node_class: &str,
        environment: &[(&str, String)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.json").display().to_string();
        let arguments = [
            "smoke",
            "--provider",
            provider,
            "--node-class",
            node_class,
            "--yes",
            "-o",
            "json",
            "--report",
            &report,
        ];
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let process = real.plane.run("smoke", &ours().unwrap(), &arguments, &environment).unwrap();
        Self { process: RefCell::new(process), folder }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.process.borrow_mut().exit_status().unwrap().is_some()
    }

    /// Checks that it has passed: a spot and an on-demand node came and went, and nothing is left.
    #[track_caller]
    pub(crate) fn has_passed(self) {
        let mut process = self.process.into_inner();
        let (status, log) = (process.exit_status().unwrap(), process.log().unwrap());
        assert_eq!(status.and_then(|status| status.code()), Some(0), "{log}");
        let report = fs::read_to_string(self.folder.path().join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let nodes = report["nodes"].as_array().unwrap();
        let mut capacity_types: Vec<&str> =
            nodes.iter().map(|node| node["capacityType"].as_str().unwrap()).collect();
        capacity_types.sort_unstable();
        assert_eq!(capacity_types, ["on-demand", "spot"], "{report:#}");
        for node in nodes {
            assert!(node["providerId"].as_str().is_some_and(|id| !id.is_empty()), "{report:#}");
            for time in ["launched", "registered", "initialized", "podRunning"] {
                assert!(node[time].is_i64(), "{time} in {report:#}");
            }
        }
        let steps = report["steps"].as_array().unwrap();
        assert!(steps.len() == 8 && steps.iter().all(|step| step["error"].is_null()), "{report:#}");
    }
}
