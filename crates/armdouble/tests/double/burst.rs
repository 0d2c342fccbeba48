//! Many machines at once.

use std::time::Duration;

use armdouble::{Kind, Throttle};
use http::Method;

use crate::support::{Azure, COMPUTE, NETWORK, seconds};

/// Asks again after as long as it is told to wait; how many calls that took.
async fn until_accepted(azure: &Azure, path: &str, version: &str, body: &serde_json::Value) -> usize {
    let mut calls = 0;
    loop {
        calls += 1;
        let told = azure.ask(Method::PUT, path, version, body.clone()).await;
        let Some(after) = told.header("retry-after").filter(|_| told.status == 429) else {
            assert!(told.status < 300, "{}", told.body);
            return calls;
        };
        tokio::time::sleep(Duration::from_secs(after.parse().unwrap())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_machines_get_through_windows_of_thirty_seconds() {
    let azure = Azure::new();
    azure.double.throttle(Throttle::writes(Kind::VirtualMachine, 200, Duration::from_secs(30)));
    let mut calls = 0;
    for number in 0..1000 {
        let name = format!("aks-{number}");
        let body = azure.interface_body(&name);
        until_accepted(&azure, &azure.interface_id(&name), NETWORK, &body).await;
        let body = azure.machine_body(&name, "Standard_D2s_v3", "1");
        calls += until_accepted(&azure, &azure.machine_id(&name), COMPUTE, &body).await;
    }
    assert_eq!(calls, 1004, "every window but the last one ends with a refusal");
    seconds(60).await;
    assert_eq!(azure.machines().len(), 1000);
    assert_eq!(azure.double.change(|world| world.quota.used("cores")), 2000);
    assert_eq!(azure.graph("microsoft.compute/virtualmachines").await.len(), 100, "a page");
}
