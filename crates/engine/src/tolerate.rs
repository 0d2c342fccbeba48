//! Which taints a pod can live with.

use crate::model::{Effect, Taint, Toleration, TolerationOperator};

impl Toleration {
    /// A toleration of every taint that only advises against a node.
    pub fn of_advice() -> Self {
        Self {
            key: None,
            operator: TolerationOperator::Exists,
            value: "".into(),
            effect: Some(Effect::PreferNoSchedule),
        }
    }

    /// Whether a taint is tolerated.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && match self.operator {
                TolerationOperator::Exists => true,
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Gt => self.compares(taint, |taint, own| taint > own),
                TolerationOperator::Lt => self.compares(taint, |taint, own| taint < own),
            }
    }

    fn compares(&self, taint: &Taint, test: fn(i64, i64) -> bool) -> bool {
        match (taint.value.parse(), self.value.parse()) {
            (Ok(taint), Ok(own)) => test(taint, own),
            _ => false,
        }
    }
}

impl Effect {
    /// The effect's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl std::fmt::Display for Taint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let effect = self.effect.as_str();
        if self.value.is_empty() {
            write!(f, "{}:{effect}", self.key)
        } else {
            write!(f, "{}={}:{effect}", self.key, self.value)
        }
    }
}

/// The taints that none of the tolerations covers.
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> impl Iterator<Item = &'a Taint> {
    taints.iter().filter(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}
