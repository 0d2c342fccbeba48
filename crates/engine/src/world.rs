//! A snapshot together with what is learnt about it while deciding: combined requirements, further tolerations,
//! and answers that are asked for again.

use crate::model::{Snapshot, Table, TaintsId, Toleration, TolerationsId};
use crate::tolerate::untolerated;
use crate::universe::{FastMap, Universe};

/// What one solve works on.
#[derive(Clone)]
pub(crate) struct World<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) universe: Universe,
    tolerations: Table<Toleration>,
    tolerated: FastMap<(TolerationsId, TaintsId), bool>,
}

impl<'a> World<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            universe: snapshot.universe.clone(),
            tolerations: snapshot.tolerations.clone(),
            tolerated: FastMap::default(),
        }
    }

    /// Whether all taints are tolerated.
    pub(crate) fn tolerates(&mut self, tolerations: TolerationsId, taints: TaintsId) -> bool {
        if taints == TaintsId::default() {
            return true;
        }
        let (snapshot, lists) = (self.snapshot, &self.tolerations);
        *self.tolerated.entry((tolerations, taints)).or_insert_with(|| {
            untolerated(snapshot.taints.get(taints.0), lists.get(tolerations.0)).next().is_none()
        })
    }

    /// A list of tolerations.
    pub(crate) fn tolerations(&self, id: TolerationsId) -> &[Toleration] {
        self.tolerations.get(id.0)
    }

    /// The list that also tolerates taints that only advise.
    pub(crate) fn with_advice(&mut self, id: TolerationsId) -> TolerationsId {
        let mut list = self.tolerations.get(id.0).to_vec();
        list.push(Toleration::of_advice());
        TolerationsId(self.tolerations.intern(list))
    }
}
