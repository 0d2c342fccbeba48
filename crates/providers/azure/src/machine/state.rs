//! Where a machine is on its way, and what is wrong with it.

use crate::arm::types::machine::{ErrorDetail, Machine};

/// Where a machine is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is being made.
    Continues,
    /// It is made.
    Done,
    /// AKS gave up, and says why.
    Failed(ErrorDetail),
    /// It will never be made.
    Over(String),
    /// Nobody knows; perhaps later.
    Unclear(String),
}

/// Where a machine is on its way.
pub fn progress(machine: &Machine) -> Progress {
    let properties = machine.properties.as_ref();
    let name = machine.name.as_deref().unwrap_or_default();
    match properties.and_then(|properties| properties.provisioning_state.as_deref()) {
        Some("Creating" | "Updating") => Progress::Continues,
        Some("Succeeded") => Progress::Done,
        Some("Failed") => {
            let status = properties.and_then(|properties| properties.status.as_ref());
            match status.and_then(|status| status.provisioning_error.clone()) {
                Some(error) => Progress::Failed(error),
                None => Progress::Over(format!("AKS machine {name:?} failed, and AKS does not say why")),
            }
        }
        Some("Deleting") => {
            Progress::Over(format!("creating AKS machine {name:?} was canceled: it is being deleted"))
        }
        Some(other) => Progress::Unclear(format!("AKS machine {name:?} is in the unknown state {other:?}")),
        None => Progress::Unclear(format!("AKS machine {name:?} has no state")),
    }
}

/// What is behind an error of AKS: what the compute service said, if anything.
pub fn root_cause(error: &ErrorDetail) -> &ErrorDetail {
    error.details.as_ref().and_then(|details| details.first()).unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(properties: &Value) -> Progress {
        progress(&serde_json::from_value(json!({"name": "m", "properties": properties})).unwrap())
    }

    // azure.md 11.5: states
    #[test]
    fn the_state_says_where_a_machine_is() {
        assert_eq!(of(&json!({"provisioningState": "Creating"})), Progress::Continues);
        assert_eq!(of(&json!({"provisioningState": "Updating"})), Progress::Continues);
        assert_eq!(of(&json!({"provisioningState": "Succeeded"})), Progress::Done);
        assert!(
            matches!(of(&json!({"provisioningState": "Deleting"})), Progress::Over(text) if text.contains("canceled"))
        );
        assert!(
            matches!(of(&json!({"provisioningState": "Odd"})), Progress::Unclear(text) if text.contains("Odd"))
        );
        assert!(matches!(of(&json!({})), Progress::Unclear(_)));
        assert!(matches!(progress(&Machine::default()), Progress::Unclear(_)));
    }

    // azure.md 11.5, 11.2: Failed → provisioningError, its details first
    #[test]
    fn a_failed_machine_says_why_and_what_is_behind_it() {
        let error = json!({"code": "QuotaExceeded", "message": "outer", "details": [
            {"code": "OperationNotAllowed", "message": "inner"}, {"code": "Other"},
        ]});
        let state = of(&json!({"provisioningState": "Failed", "status": {"provisioningError": error}}));
        let Progress::Failed(error) = state else { panic!("{state:?}") };
        assert_eq!(root_cause(&error).code.as_deref(), Some("OperationNotAllowed"));
        let alone =
            ErrorDetail { code: Some("X".to_owned()), details: Some(vec![]), ..ErrorDetail::default() };
        assert_eq!(root_cause(&alone), &alone);
        assert!(matches!(of(&json!({"provisioningState": "Failed"})), Progress::Over(_)));
        assert!(matches!(of(&json!({"provisioningState": "Failed", "status": {}})), Progress::Over(_)));
    }
}
