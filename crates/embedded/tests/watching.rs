//! Watches: nothing is lost, nothing is told twice, whatever happens to the connection.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use clock::Clock;
use embedded::faults::{Fault, Faulty, Rule};
use embedded::{Options, Server};
use futures::{StreamExt as _, TryStreamExt as _};
use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

fn server(history: usize) -> Server {
    Server::new(
        Clock::starting_at(Timestamp::UNIX_EPOCH),
        &Options { seed: 1, history, ..Options::default() },
    )
}

fn client(server: &Server) -> kube::Client {
    kube::Client::new(server.service(), "default")
}

fn create(server: &Server, namespace: &str, name: &str, data: &str) {
    let body = json!({"metadata": {"name": name, "labels": {"data": data}}, "data": {"v": data}});
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let (code, answer) = server.send(Method::POST, &path, "", &body);
    assert!(code.is_success(), "{answer}");
}

fn change(server: &Server, namespace: &str, name: &str, data: &str) {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let changed = json!({"metadata": {"labels": {"data": data}}, "data": {"v": data}});
    let (code, answer) = server.send(Method::PATCH, &path, "application/merge-patch+json", &changed);
    assert!(code.is_success(), "{answer}");
}

fn delete(server: &Server, namespace: &str, name: &str) {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let (code, answer) = server.send(Method::DELETE, &path, "", &Value::Null);
    assert!(code.is_success(), "{answer}");
}

/// What a watcher believes, fed by events.
#[derive(Default)]
struct Belief {
    objects: BTreeMap<String, String>,
    starting: BTreeMap<String, String>,
}

impl Belief {
    fn see(&mut self, event: watcher::Event<ConfigMap>) {
        let entry = |object: ConfigMap| {
            let data = object.data.unwrap_or_default();
            (object.metadata.name.unwrap_or_default(), data.get("v").cloned().unwrap_or_default())
        };
        match event {
            watcher::Event::Init => self.starting.clear(),
            watcher::Event::InitApply(object) => self.starting.extend([entry(object)]),
            watcher::Event::InitDone => self.objects = std::mem::take(&mut self.starting),
            watcher::Event::Apply(object) => self.objects.extend([entry(object)]),
            watcher::Event::Delete(object) => {
                self.objects.remove(&entry(object).0);
            }
        }
    }
}

/// Runs random changes while a watcher listens through `client`, and compares what it believes with the truth.
async fn follows(server: Server, client: kube::Client, config: watcher::Config, disturb: fn(&Server, usize)) {
    let seed = 7;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let mut events = pin!(watcher(api, config).default_backoff());
    let mut belief = Belief::default();
    let mut truth: BTreeMap<String, String> = BTreeMap::new();
    for round in 0..300 {
        let name = format!("c{}", random.random_range(0..20));
        let data = round.to_string();
        if truth.contains_key(&name) && random.random_range(0..3) == 0 {
            delete(&server, "default", &name);
            truth.remove(&name);
        } else {
            let write = if truth.contains_key(&name) { change } else { create };
            write(&server, "default", &name, &data);
            truth.insert(name, data);
        }
        disturb(&server, round);
        // The watcher may be behind for a while, and has to catch up in the end.
        let pause = Duration::from_millis(random.random_range(0..400));
        let end = tokio::time::Instant::now() + pause;
        while let Ok(event) = tokio::time::timeout_at(end, events.next()).await {
            if let Some(Ok(event)) = event {
                belief.see(event);
            }
        }
    }
    let quiet = tokio::time::Instant::now() + Duration::from_mins(10);
    while let Ok(event) = tokio::time::timeout_at(quiet, events.next()).await {
        if let Some(Ok(event)) = event {
            belief.see(event);
        }
    }
    assert_eq!(belief.objects, truth, "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn a_listing_watcher_follows_every_change() {
    let server = server(4096);
    follows(server.clone(), client(&server), watcher::Config::default(), |_, _| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_watcher_follows_every_change() {
    let server = server(4096);
    let config = watcher::Config::default().streaming_lists();
    follows(server.clone(), client(&server), config, |_, _| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_survives_cut_connections_and_forgotten_history() {
    for streaming in [false, true] {
        let server = server(4);
        let config = watcher::Config::default();
        let config = if streaming { config.streaming_lists() } else { config };
        follows(server.clone(), client(&server), config, |server, round| {
            if round % 10 == 3 {
                server.cut_watches();
            }
            if round % 25 == 7 {
                server.compact();
                server.cut_watches();
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_history_of_large_objects_is_short() {
    let server = server(4096);
    create(&server, "default", "a", "0");
    let path = "/api/v1/namespaces/default/configmaps/a";
    let change = |text: &str| {
        let change = json!({"data": {"text": text}});
        let (code, answer) = server.send(Method::PATCH, path, "application/merge-patch+json", &change);
        assert!(code.is_success(), "{answer}");
        answer["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
    };
    let versions: Vec<String> = ["a", "b", "c", "d", "e"].map(|one| change(&one.repeat(700_000))).into();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let first = async |version: &str| {
        let mut events = pin!(api.watch(&WatchParams::default().timeout(5), version).await.unwrap());
        events.next().await
    };
    assert!(matches!(first(&versions[0]).await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    assert!(matches!(first(&versions[3]).await, Some(Ok(WatchEvent::Modified(_)))));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_survives_every_fault() {
    let server = server(16);
    let faulty = Faulty::new(server.service(), 3);
    faulty.set_rules(vec![
        Rule::on("watch", "", 0.3, Fault::CutWatch { after: 2 }),
        Rule::on("list", "", 0.2, Fault::Expired),
        Rule::on("list", "", 0.2, Fault::StaleRead { behind: 3 }),
        Rule::everywhere(0.1, Fault::Cut),
        Rule::everywhere(0.1, Fault::InternalError),
        Rule::everywhere(0.1, Fault::TooManyRequests),
        Rule::everywhere(0.2, Fault::Delay(Duration::from_millis(300))),
    ]);
    let client = kube::Client::new(faulty.clone(), "default");
    follows(server, client, watcher::Config::default(), |server, round| {
        if round % 20 == 3 {
            server.cut_watches();
        }
    })
    .await;
    assert!(faulty.injected() > 5, "only {} faults happened", faulty.injected());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_is_deleted_for_the_watcher() {
    let server = server(4096);
    create(&server, "default", "a", "in");
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let params = WatchParams::default().labels("data=in").timeout(5);
    let from = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    change(&server, "default", "a", "out");
    change(&server, "default", "a", "in");
    delete(&server, "default", "a");
    let events: Vec<_> = api.watch(&params, &from).await.unwrap().try_collect().await.unwrap();
    let kinds: Vec<String> = events
        .iter()
        .map(|event| match event {
            WatchEvent::Added(object) => format!("added {}", object.data.as_ref().unwrap()["v"]),
            WatchEvent::Modified(object) => format!("modified {}", object.data.as_ref().unwrap()["v"]),
            // The last state that the selection showed.
            WatchEvent::Deleted(object) => format!("deleted {}", object.data.as_ref().unwrap()["v"]),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["deleted in", "added in", "deleted in"]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_is_told_the_revision_every_minute() {
    let server = server(4096);
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let params = WatchParams::default().timeout(200);
    let watch = api.watch(&params, "1").await.unwrap();
    create(&server, "kube-system", "elsewhere", "x");
    let events: Vec<_> = watch.try_collect().await.unwrap();
    let bookmarks = events.iter().filter(|event| matches!(event, WatchEvent::Bookmark(_))).count();
    assert_eq!(bookmarks, 3);
}

#[tokio::test(start_paused = true)]
async fn pages_show_the_moment_of_the_first_page() {
    let server = server(4096);
    for number in 0..25 {
        create(&server, "default", &format!("c{number:02}"), "old");
    }
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let first = api.list(&ListParams::default().limit(10)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(15));
    delete(&server, "default", "c20");
    change(&server, "default", "c21", "new");
    create(&server, "default", "c22a", "new");
    let mut seen = first.items.len();
    let mut token = first.metadata.continue_.unwrap();
    while !token.is_empty() {
        let page = api.list(&ListParams::default().limit(10).continue_token(&token)).await.unwrap();
        assert!(page.items.iter().all(|object| object.data.as_ref().unwrap()["v"] == "old"));
        seen += page.items.len();
        token = page.metadata.continue_.unwrap_or_default();
    }
    assert_eq!(seen, 25);
}

/// 1,000 watches in 100 namespaces: each change reaches ten of them, once and in order.
#[tokio::test(start_paused = true)]
async fn a_thousand_watches_see_every_change_once_and_in_order() {
    let writes = if cfg!(debug_assertions) { 3_000 } else { 100_000 };
    let seed = 11;
    let server = server(4096);
    let mut watches = Vec::new();
    for number in 0..100 {
        let namespace = json!({"metadata": {"name": format!("n{number}")}});
        server.send(Method::POST, "/api/v1/namespaces", "", &namespace);
    }
    let start = server.revision().to_string();
    for number in 0..1_000 {
        let api: Api<ConfigMap> = Api::namespaced(client(&server), &format!("n{}", number % 100));
        let watch = api.watch(&WatchParams::default().timeout(3_600), &start).await.unwrap().boxed();
        watches.push((number % 100, watch, Vec::<(String, u64)>::new()));
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut told: Vec<Vec<(String, u64)>> = vec![Vec::new(); 100];
    let mut live: BTreeSet<(usize, u32)> = BTreeSet::new();
    for round in 0..writes {
        let (namespace, number) = (random.random_range(0..100_usize), random.random_range(0..20_u32));
        let (place, name) = (format!("n{namespace}"), format!("c{number}"));
        let kind = if !live.remove(&(namespace, number)) {
            create(&server, &place, &name, "x");
            live.insert((namespace, number));
            "ADDED"
        } else if random.random_range(0..4) == 0 {
            delete(&server, &place, &name);
            "DELETED"
        } else {
            change(&server, &place, &name, &round.to_string());
            live.insert((namespace, number));
            "MODIFIED"
        };
        told[namespace].push((format!("{kind} {name}"), server.revision()));
        if round % 1_000 == 999 {
            drain(&mut watches).await;
        }
    }
    drain(&mut watches).await;
    for (namespace, _, seen) in &watches {
        assert_eq!(seen, &told[*namespace], "seed {seed}, namespace n{namespace}");
    }
}

type Watch = futures::stream::BoxStream<'static, Result<WatchEvent<ConfigMap>, kube::Error>>;

/// The number of a namespace, its watch, and what was seen.
type Watching = (usize, Watch, Vec<(String, u64)>);

async fn drain(watches: &mut [Watching]) {
    for (_, watch, seen) in watches {
        let end = tokio::time::Instant::now() + Duration::from_millis(1);
        while let Ok(Some(Ok(event))) = tokio::time::timeout_at(end, watch.next()).await {
            let (kind, object) = match event {
                WatchEvent::Added(object) => ("ADDED", object),
                WatchEvent::Modified(object) => ("MODIFIED", object),
                WatchEvent::Deleted(object) => ("DELETED", object),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(error) => panic!("{error:?}"),
            };
            let revision = object.metadata.resource_version.unwrap_or_default().parse().unwrap_or_default();
            seen.push((format!("{kind} {}", object.metadata.name.unwrap_or_default()), revision));
        }
    }
}
