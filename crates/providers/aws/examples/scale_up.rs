//! Five hundred claims of one shape at once, with every instance type of EC2: how long our code takes, and how many
//! requests it sends. AWS is in the process and answers at once, so that what is measured is ours and the double's.
//!
//! `cargo run --release -p karpenter-aws --example scale_up`

#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement")]

#[path = "../tests/aws/play.rs"]
#[expect(dead_code, reason = "made for tests")]
mod play;
#[path = "../tests/aws/support.rs"]
#[expect(dead_code, reason = "made for tests")]
mod support;

use std::collections::BTreeMap;
use std::time::Instant;

use cloud::CloudProvider as _;
use futures::future::join_all;
use serde_json::json;

use play::Play;
use support::{DISCOVERED, claim};

const CLAIMS: usize = 500;

fn main() {
    let names: Vec<&str> = DISCOVERED.types().map(|info| info.name.as_str()).collect();
    let mut play = Play::new(&names);
    play.ready_class("default", &json!({}), &json!({}));
    let wishes: [(&str, &[_]); 3] = [
        ("anything", &[]),
        ("on demand", &[("karpenter.sh/capacity-type", "In", &["on-demand"][..])]),
        ("general purpose", &[("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"][..])]),
    ];
    for (name, requirements) in wishes {
        let claims: Vec<_> = (0..CLAIMS).map(|_| claim(requirements)).collect();
        play.double.forget_calls();
        let start = Instant::now();
        let launched = play.world.block_on(join_all(claims.iter().map(|each| play.aws.create(each))));
        let time = start.elapsed();
        assert!(launched.iter().all(Result::is_ok), "{:?}", launched.iter().find(|each| each.is_err()));
        let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
        for call in play.double.calls() {
            *calls.entry(call.operation).or_default() += 1;
        }
        println!("{CLAIMS} claims for {name} of {} types: {time:.1?}, requests {calls:?}", names.len());
    }
}
