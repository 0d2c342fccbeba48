//! How zones are named: by labels of nodes, and by Azure.

/// The label's value for machines outside of zones.
pub const REGIONAL: &str = "0";

/// Whether a machine is in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// It is in one.
    Zonal,
    /// It is anywhere in the region.
    Regional,
}

impl Scope {
    /// Whether machines with a zone label are in a zone.
    pub fn of(label: &str) -> Self {
        if label == REGIONAL { Self::Regional } else { Self::Zonal }
    }

    /// The value of the label `placement-scope`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Zonal => "zonal",
            Self::Regional => "regional",
        }
    }
}

/// The label of one of Azure's zones.
pub fn label(location: &str, zone: &str) -> String {
    format!("{}-{zone}", location.to_ascii_lowercase())
}

/// The zones that Azure is told for a label.
pub fn to_azure(label: &str) -> Vec<String> {
    if label == REGIONAL {
        return Vec::new();
    }
    label.chars().next_back().map(String::from).into_iter().collect()
}

/// A place of a machine that no label says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLabel {
    /// It is in a zone of an unknown region.
    #[error("the machine is in zone {0:?}, and its location is empty")]
    NoLocation(String),
    /// It is in several zones.
    #[error("the machine is in zones {}, expected one at most", .0.join(", "))]
    SeveralZones(Vec<String>),
}

/// The label of a machine that Azure says is in some zones.
pub fn from_azure(location: &str, zones: &[String]) -> Result<String, NoLabel> {
    match zones {
        [] => Ok(REGIONAL.to_owned()),
        [zone] if location.is_empty() => Err(NoLabel::NoLocation(zone.clone())),
        [zone] => Ok(label(location, zone)),
        several => Err(NoLabel::SeveralZones(several.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 5.1
    #[test]
    fn labels_and_azures_zones_are_two_names_of_the_same() {
        assert_eq!(label("WestUS2", "1"), "westus2-1");
        assert_eq!(to_azure("westus2-3"), ["3"]);
        assert_eq!(to_azure(REGIONAL), [""; 0]);
        assert_eq!(to_azure(""), [""; 0]);
        assert_eq!(from_azure("westus2", &[]).as_deref(), Ok("0"));
        assert_eq!(from_azure("westus2", &["2".to_owned()]).as_deref(), Ok("westus2-2"));
        assert_eq!((Scope::of("0").as_str(), Scope::of("westus2-1").as_str()), ("regional", "zonal"));
    }

    // azure.md 5.1
    #[test]
    fn a_machine_in_several_zones_or_in_no_region_has_no_label() {
        let zones = ["1".to_owned(), "2".to_owned()];
        let text = |result: Result<String, NoLabel>| result.unwrap_err().to_string();
        assert_eq!(text(from_azure("westus2", &zones)), "the machine is in zones 1, 2, expected one at most");
        assert_eq!(
            text(from_azure("", &zones[..1])),
            "the machine is in zone \"1\", and its location is empty"
        );
    }
}
