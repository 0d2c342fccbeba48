//! What NodePools have.

use super::instances::{apply, claim, listed, node};
use super::*;

fn cpu(state: &State, pool: &str) -> String {
    let total = state.pool_resources(pool);
    format!("{} in {}", total.amount("cpu"), total.amount("nodes"))
}

fn registered(pool: &str) -> Value {
    json!({"karpenter.sh/nodepool": pool, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"})
}

#[test]
fn a_pool_has_what_its_nodes_have_that_stay() {
    let mut state = listed();
    assert_eq!(cpu(&state, "p"), "0 in 0");
    apply(&mut state, claim("c", "p", "", &json!({})));
    assert_eq!(cpu(&state, "p"), "0 in 0", "not launched yet");
    apply(&mut state, claim("c", "p", "kwok://n", &json!({})));
    assert_eq!(cpu(&state, "p"), "4 in 1");
    apply(&mut state, node("n", "kwok://n", &registered("p")));
    assert_eq!(cpu(&state, "p"), "5 in 1");
    apply(&mut state, claim("d", "p", "kwok://m", &json!({})));
    assert_eq!(cpu(&state, "p"), "9 in 2");
    state.mark_for_deletion(["kwok://m"]);
    assert_eq!(cpu(&state, "p"), "5 in 1");
    state.unmark_for_deletion(["kwok://m"]);
    assert_eq!(cpu(&state, "p"), "9 in 2");
    apply(&mut state, node("n", "kwok://n", &registered("q")));
    assert_eq!((cpu(&state, "p"), cpu(&state, "q")), ("4 in 1".into(), "5 in 1".into()));
    state.gone(Kind::Node, &Key::cluster("n"), None);
    assert_eq!(cpu(&state, "p"), "8 in 2");
    state.gone(Kind::NodeClaim, &Key::cluster("c"), None);
    state.gone(Kind::NodeClaim, &Key::cluster("d"), None);
    assert!(state.pool_resources("p").is_empty());
}

fn claims(state: &State) -> [usize; 3] {
    let claims = state.pool_claims("p");
    [claims.active.len(), claims.deleting.len(), claims.pending_disruption.len()]
}

#[test]
fn claims_are_active_pending_disruption_or_deleting() {
    let mut state = listed();
    assert!(state.pool_claims("p").is_empty());
    apply(&mut state, claim("a", "p", "kwok://a", &json!({})));
    apply(&mut state, claim("b", "p", "", &json!({})));
    apply(&mut state, claim("other", "q", "", &json!({})));
    assert_eq!(claims(&state), [2, 0, 0]);
    state.mark_pending_disruption(["a"]);
    assert_eq!(claims(&state), [1, 0, 1]);
    apply(&mut state, claim("a", "p", "kwok://a", &json!({"metadata": {"annotations": {"x": "y"}}})));
    assert_eq!(claims(&state), [1, 0, 1], "an update does not bring it back");
    state.mark_for_deletion(["kwok://a"]);
    assert_eq!(claims(&state), [1, 1, 0]);
    state.unmark_for_deletion(["kwok://a"]);
    assert_eq!(claims(&state), [2, 0, 0]);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    apply(&mut state, claim("b", "p", "", &deleted));
    assert_eq!(claims(&state), [1, 1, 0]);
    state.mark_pending_disruption(["a"]);
    state.gone(Kind::NodeClaim, &Key::cluster("a"), None);
    apply(&mut state, claim("a", "p", "kwok://a", &json!({})));
    assert_eq!(claims(&state), [1, 1, 0], "a new one of the same name");
}

#[test]
fn room_is_reserved_up_to_the_limit() {
    let mut state = listed();
    apply(&mut state, claim("a", "p", "kwok://a", &json!({})));
    assert_eq!(state.reserve("p", Some(4), 2), 2);
    assert_eq!(state.reserve("p", Some(4), 2), 1);
    assert_eq!(state.reserve("p", Some(4), 2), 0);
    assert_eq!(state.reserve("p", Some(0), 2), 0);
    state.release("p", 1);
    assert_eq!((state.reserved("p"), state.reserve("p", Some(4), 2)), (2, 1));
    state.release("p", 9);
    state.release("unknown", 1);
    assert_eq!((state.reserved("p"), state.reserved("unknown")), (0, 0));
    assert_eq!(state.reserve("p", None, 100), 100);
}
