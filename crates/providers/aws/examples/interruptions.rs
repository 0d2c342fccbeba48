//! Fifteen thousand messages about a thousand spot instances: how long our code takes for them, and how many requests
//! it sends. AWS and the cluster are in the process and answer at once, so that what is measured is ours and theirs.
//!
//! `cargo run --release -p karpenter-aws --example interruptions`

#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement")]

#[path = "../tests/aws/play.rs"]
#[expect(dead_code, reason = "made for tests")]
mod play;
#[path = "../tests/aws/support.rs"]
#[expect(dead_code, reason = "made for tests")]
mod support;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use aws::port::Message;
use serde_json::json;

use play::Play;

const MESSAGES: usize = 15_000;
const NODES: usize = 1_000;

fn main() {
    let mut play = Play::with(&["m5.large"], &["--interruption-queue=queue"]);
    play.ready_class("default", &json!({}), &json!({}));
    let spot = ("karpenter.sh/capacity-type", "In", &["spot"][..]);
    let ids: Vec<String> = (0..NODES).map(|number| play.node(&format!("claim-{number}"), &[spot])).collect();
    let kinds = ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"];
    let message = |number: usize| {
        let body = json!({
            "version": "0", "source": "aws.ec2", "detail-type": kinds[number % 2],
            "time": play.world.now().to_string(), "detail": {"instance-id": ids[number % NODES]},
        });
        Message { body: body.to_string(), receipt: format!("receipt-{number}") }
    };
    let messages: VecDeque<Message> = (0..MESSAGES).map(message).collect();
    play.double.change(|world| world.queue = Some(messages));
    play.double.forget_calls();
    let start = Instant::now();
    play.start_some(|name| name == api::names::controllers::aws::INTERRUPTION);
    while play.double.change(|world| world.queue.as_ref().is_some_and(|queue| !queue.is_empty())) {
        play.pass(1);
    }
    let time = start.elapsed();
    let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
    for call in play.double.calls() {
        *calls.entry(call.operation).or_default() += 1;
    }
    println!("{MESSAGES} messages about {NODES} nodes: {time:.1?}, requests {calls:?}");
}
