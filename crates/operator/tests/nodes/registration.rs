//! 16.22: registration of NodeClaims, with and without hooks.

use cloud::Error;
use runtime::Again;
use serde_json::{Value, json};
use testkit::World;

use crate::support::{FakeCloud, FakeHook, Operated};

fn taints(node: &Value) -> Vec<String> {
    let list = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    list.iter().map(|taint| format!("{}:{}", taint["key"], taint["effect"]).replace('"', "")).collect()
}

/// A claim with something of everything that a node gets from it.
fn rich() -> Value {
    json!({
        "metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}},
        "spec": {
            "taints": [{"key": "example.com/stays", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "example.com/starts", "effect": "NoSchedule"}],
        },
    })
}

#[test]
fn a_node_gets_what_its_claim_says() {
    let mut world = Operated::start();
    world.add_claim("a", &rich());
    world.pass(5);
    let (node, claim) = (world.node("a"), world.claim("a"));
    assert_eq!(world.condition("a", "Registered"), "True");
    let metadata = &node["metadata"];
    assert_eq!((&metadata["labels"]["a"], &metadata["annotations"]["b"]), (&json!("1"), &json!("2")));
    assert_eq!(metadata["labels"]["karpenter.sh/registered"], "true");
    assert_eq!(metadata["finalizers"], json!(["karpenter.sh/termination"]));
    assert_eq!(
        metadata["ownerReferences"],
        json!([{
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "a",
            "uid": claim["metadata"]["uid"], "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(taints(&node), ["example.com/stays:NoSchedule", "example.com/starts:NoSchedule"]);
}

#[test]
fn removed_startup_taints_do_not_come_back() {
    let mut world = Operated::start();
    world.add_claim("a", &rich());
    world.pass(5);
    world.patch("/api/v1/nodes/a", &json!({"spec": {"taints": []}}));
    world.pass(60);
    assert!(taints(&world.node("a")).is_empty());
    assert_eq!(world.condition("a", "Initialized"), "True");
}

#[test]
fn a_node_without_the_taint_of_unregistered_ones_registers_all_the_same() {
    let mut world = Operated::start();
    *world.cloud.untainted.lock() = true;
    world.add_node("a", &json!({}));
    assert!(
        world.events("UnregisteredTaintMissing")[0].starts_with("a: Missing karpenter.sh/unregistered taint")
    );
}

#[test]
fn nodes_that_set_their_taints_themselves_get_none() {
    for (value, expected) in [("true", 0), ("false", 2)] {
        let mut world = Operated::start();
        let labels = json!({"karpenter.sh/do-not-sync-taints": value});
        *world.cloud.node_change.lock() = json!({"metadata": {"labels": labels}});
        world.add_claim("a", &rich());
        world.pass(5);
        assert_eq!(taints(&world.node("a")).len(), expected, "{value}");
        assert_eq!(world.condition("a", "Registered"), "True");
    }
}

#[test]
fn a_claim_without_a_node_waits_and_one_with_two_is_broken() {
    let mut world = Operated::start();
    *world.cloud.nodes_fail.lock() = true;
    world.add_claim("a", &json!({}));
    world.pass(5);
    assert_eq!(world.said("a", "Registered"), "Unknown NodeNotFound: Node not registered with cluster");
    let node = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": "fake://a"},
        })
    };
    // Both are there before anybody looks: writes to the server take no time.
    world.apply(&format!("{}\n---\n{}", node("x"), node("y")));
    world.pass(5);
    assert_eq!(
        world.said("a", "Registered"),
        "False MultipleNodesFound: Invariant violated, matched multiple nodes"
    );
    assert_eq!(world.condition("a", "Ready"), "False");
}

#[test]
fn hooks_are_asked_all_at_once() {
    let hooks = [FakeHook::pending("first"), FakeHook::pending("second"), FakeHook::pending("third")];
    for hook in &hooks {
        hook.say(Ok(Again::No));
        *hook.takes.lock() = std::time::Duration::from_secs(20);
    }
    let mut world = Operated::with(World::new(1), FakeCloud::with_hooks(&hooks));
    world.add_claim("a", &json!({}));
    // One after the other they would take a minute.
    world.pass(35);
    assert_eq!(world.condition("a", "Registered"), "True");
}

#[test]
fn registration_waits_for_all_hooks() {
    let hooks = [FakeHook::pending("first"), FakeHook::pending("second"), FakeHook::pending("third")];
    hooks[2].say(Ok(Again::No));
    let mut world = Operated::with(World::new(1), FakeCloud::with_hooks(&hooks));
    world.add_claim("a", &rich());
    world.pass(20);
    assert_eq!(world.said("a", "Registered"), "Unknown RegistrationHookPending: first, second");
    let node = world.node("a");
    assert_eq!(taints(&node)[0], "karpenter.sh/unregistered:NoExecute");
    assert_eq!(node["metadata"]["labels"]["a"], "1", "everything else is there already");
    hooks[0].say(Ok(Again::No));
    hooks[1].say(Err(Error::Other("broken".to_owned())));
    world.pass(20);
    assert_eq!(world.said("a", "Registered"), "Unknown RegistrationHookPending: second");
    hooks[1].say(Ok(Again::No));
    world.until("it is registered", 120, |world| world.condition("a", "Registered") == "True");
    assert!(!taints(&world.node("a")).contains(&"karpenter.sh/unregistered:NoExecute".to_owned()));
}

#[test]
fn labels_that_a_hook_adds_reach_the_node() {
    let hook = FakeHook::pending("labels");
    let mut world = Operated::with(World::new(1), FakeCloud::with_hooks(std::slice::from_ref(&hook)));
    *hook.api.lock() = Some(world.context.api.clone());
    hook.labels.lock().insert("example.com/hooked".to_owned(), "yes".to_owned());
    hook.say(Ok(Again::No));
    world.add_node("a", &json!({}));
    assert_eq!(world.claim("a")["metadata"]["labels"]["example.com/hooked"], "yes");
    assert_eq!(world.node("a")["metadata"]["labels"]["example.com/hooked"], "yes");
}

#[test]
fn nodes_that_join_make_their_pool_healthy() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    assert_eq!(world.pool_said("NodeRegistrationHealthy"), "True NodeRegistrationHealthy: ");
}

#[test]
fn claims_that_a_pool_does_not_own_say_nothing_about_it() {
    let mut world = Operated::start();
    world.add_claim("a", &json!({"metadata": {"ownerReferences": []}}));
    world.pass(5);
    assert_eq!(world.pool_said("NodeRegistrationHealthy"), "- -: -");
}
