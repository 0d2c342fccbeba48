//! In which order NodePools are tried and NodeOverlays are applied.

use std::cmp::Ordering;

use crate::nodeoverlay::NodeOverlay;
use crate::nodepool::NodePool;

/// Puts NodePools that are tried first before others.
pub fn by_pool_precedence(a: &NodePool, b: &NodePool) -> Ordering {
    by_weight_and_name(
        (a.spec.weight, a.metadata.name.as_deref()),
        (b.spec.weight, b.metadata.name.as_deref()),
    )
}

/// Puts NodeOverlays that win before others.
pub fn by_overlay_precedence(a: &NodeOverlay, b: &NodeOverlay) -> Ordering {
    by_weight_and_name(
        (a.spec.weight, a.metadata.name.as_deref()),
        (b.spec.weight, b.metadata.name.as_deref()),
    )
}

/// The higher weight first, where none is 0. With the same weight the later name comes first; that is
/// arbitrary, but it is upstream's order.
fn by_weight_and_name(a: (Option<i32>, Option<&str>), b: (Option<i32>, Option<&str>)) -> Ordering {
    (b.0.unwrap_or(0), b.1).cmp(&(a.0.unwrap_or(0), a.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodeoverlay::NodeOverlaySpec;
    use crate::nodepool::NodePoolSpec;

    #[test]
    fn higher_weights_come_first_and_then_later_names() {
        let pool =
            |name: &str, weight| NodePool::new(name, NodePoolSpec { weight, ..NodePoolSpec::default() });
        let mut pools =
            [pool("a", None), pool("b", Some(1)), pool("c", None), pool("d", Some(100)), pool("e", Some(1))];
        pools.sort_by(by_pool_precedence);
        let names: Vec<&str> = pools.iter().filter_map(|pool| pool.metadata.name.as_deref()).collect();
        assert_eq!(names, ["d", "e", "b", "c", "a"]);
    }

    #[test]
    fn overlays_have_the_same_order() {
        let overlay = |name: &str, weight| {
            NodeOverlay::new(name, NodeOverlaySpec { weight, ..NodeOverlaySpec::default() })
        };
        assert_eq!(by_overlay_precedence(&overlay("a", Some(1)), &overlay("b", None)), Ordering::Less);
        assert_eq!(by_overlay_precedence(&overlay("a", None), &overlay("b", None)), Ordering::Greater);
    }
}
