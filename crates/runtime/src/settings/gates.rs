//! Feature gates in writing: `NodeRepair=true,StaticCapacity=false`.

use ::cluster::state::Kind;
use api::names::gates;

use super::Gates;
use super::flags::{SettingsError, switch};

impl Gates {
    fn gate(&mut self, name: &str) -> Option<&mut bool> {
        let gate = gates::ALL.iter().find(|gate| gate.name == name)?;
        Some(match *gate {
            gates::NODE_REPAIR => &mut self.node_repair,
            gates::RESERVED_CAPACITY => &mut self.reserved_capacity,
            gates::SPOT_TO_SPOT_CONSOLIDATION => &mut self.spot_to_spot_consolidation,
            gates::NODE_OVERLAY => &mut self.node_overlay,
            gates::STATIC_CAPACITY => &mut self.static_capacity,
            gates::CAPACITY_BUFFER => &mut self.capacity_buffer,
            gates::TERMINATE_FIRST_DRIFT => &mut self.terminate_first_drift,
            gates::TERMINATE_FIRST_REPAIR => &mut self.terminate_first_repair,
            gates::POD_DELETION_COST_MANAGEMENT => &mut self.pod_deletion_cost_management,
            _ => return None,
        })
    }

    /// The kinds of objects to be watched: those that only a feature needs which is off are left alone, so that
    /// nobody has to install or allow them.
    pub fn kinds(self) -> Vec<Kind> {
        let is_needed = |kind: &Kind| match kind {
            Kind::NodeOverlay => self.node_overlay,
            kind => self.capacity_buffer || !Kind::OF_BUFFERS.contains(kind),
        };
        Kind::ALL.iter().copied().filter(is_needed).collect()
    }

    /// Reads gates; those that are not named have their defaults. Also says which names mean nothing.
    pub fn parse(text: &str) -> Result<(Self, Vec<String>), SettingsError> {
        let mut gates = Self::default();
        let mut unknown = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) =
                item.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(|| {
                    SettingsError::Gates(format!("{item:?} is no pair; expected NAME=true or NAME=false"))
                })?;
            let on = switch(value).ok_or_else(|| {
                SettingsError::Gates(format!("{name} is {value:?}; expected true or false"))
            })?;
            match gates.gate(name) {
                Some(gate) => *gate = on,
                None => unknown.push(name.to_owned()),
            }
        }
        Ok((gates, unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_can_be_switched_and_starts_with_its_default() {
        for gate in gates::ALL {
            let mut gates = Gates::default();
            assert_eq!(gates.gate(gate.name).copied(), Some(gate.default), "{}", gate.name);
            let (mut switched, unknown) = Gates::parse(&format!("{}={}", gate.name, !gate.default)).unwrap();
            assert!(unknown.is_empty());
            assert_eq!(switched.gate(gate.name).copied(), Some(!gate.default), "{}", gate.name);
        }
    }

    #[test]
    fn kinds_that_no_feature_needs_are_not_watched() {
        let without = Gates::default().kinds();
        assert!(Kind::OF_BUFFERS.iter().all(|kind| !without.contains(kind)));
        assert!(!without.contains(&Kind::NodeOverlay));
        let all = Gates { capacity_buffer: true, node_overlay: true, ..Gates::default() };
        assert_eq!(all.kinds(), Kind::ALL);
    }

    #[test]
    fn spaces_and_empty_items_do_not_matter_and_unknown_names_are_told() {
        let (gates, unknown) = Gates::parse(" NodeRepair = T ,,StaticCapacity=1, Drift=true,").unwrap();
        assert!(gates.node_repair && gates.static_capacity && gates.reserved_capacity);
        assert_eq!(unknown, ["Drift"]);
        assert_eq!(Gates::parse("").unwrap().0, Gates::default());
    }

    #[test]
    fn what_is_no_pair_stops_the_process() {
        let error = |text| Gates::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("NodeRepair"),
            r#"parsing feature gates, "NodeRepair" is no pair; expected NAME=true or NAME=false"#
        );
        assert_eq!(
            error("NodeRepair="),
            r#"parsing feature gates, NodeRepair is ""; expected true or false"#
        );
        assert_eq!(
            error("Unknown=perhaps"),
            r#"parsing feature gates, Unknown is "perhaps"; expected true or false"#
        );
    }
}
