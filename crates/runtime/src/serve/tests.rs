//! Pages as probes and scrapers see them.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use api::names::metrics as names;
use expect_test::expect;

use super::*;

fn checks() -> Vec<Check> {
    vec![
        Check::ping("readyz"),
        Check::new("manager", || Err("not all is listed".to_owned())),
        Check::ping("crd"),
    ]
}

/// The answers to some requests in a few lines.
fn answers(pages: &Pages, requests: &[&str]) -> String {
    let mut text = String::new();
    for request in requests {
        let (path, query) = request.split_once('?').unwrap_or((request, ""));
        let answer = futures::executor::block_on(pages.answer(path, query));
        let body = String::from_utf8_lossy(answer.body()).into_owned();
        writeln!(text, "{request}: {}\n{}", answer.status().as_u16(), body.trim_end()).unwrap();
    }
    text
}

#[test]
fn checks_are_told_together_and_one_by_one() {
    let pages = Pages::health(vec![Check::ping("healthz")], checks());
    let requests = [
        "/healthz",
        "/healthz/",
        "/healthz?verbose",
        "/healthz/healthz",
        "/healthz/other",
        "/healthzy",
        "/",
        "/readyz",
        "/readyz?exclude=manager",
        "/readyz?verbose&exclude=manager&exclude=a&exclude=b",
        "/readyz/crd",
        "/readyz/manager",
    ];
    expect![[r#"
        /healthz: 200
        ok
        /healthz/: 200
        ok
        /healthz?verbose: 200
        [+]healthz ok
        healthz check passed
        /healthz/healthz: 200
        ok
        /healthz/other: 404
        404 page not found
        /healthzy: 404
        404 page not found
        /: 404
        404 page not found
        /readyz: 500
        [+]crd ok
        [-]manager failed: reason withheld
        [+]readyz ok
        healthz check failed
        /readyz?exclude=manager: 200
        ok
        /readyz?verbose&exclude=manager&exclude=a&exclude=b: 200
        [+]crd ok
        [+]manager excluded: ok
        [+]readyz ok
        warn: some health checks cannot be excluded: no matches for "a", "b"
        healthz check passed
        /readyz/crd: 200
        ok
        /readyz/manager: 500
        internal server error: not all is listed
    "#]]
    .assert_eq(&answers(&pages, &requests));
}

#[test]
fn profiles_are_served_only_if_they_are_wanted() {
    let requests = ["/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/nothing", "/metrics", "/"];
    let statuses = |profiling| {
        let pages = Pages::metrics(Registry::default(), profiling);
        requests.map(|path| futures::executor::block_on(pages.answer(path, "")).status().as_u16())
    };
    assert_eq!(statuses(false), [404, 404, 404, 200, 404]);
    assert_eq!(statuses(true), [200, 200, 404, 200, 404]);
}

#[test]
fn a_port_answers_until_it_is_dropped() {
    let metrics = Registry::default();
    metrics.set(&names::CLUSTER_STATE_SYNCED, &[], 1.0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = Server::start(listener, Pages::metrics(metrics, true)).unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let page = get("/metrics");
    assert!(
        page.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n")
    );
    assert!(page.ends_with("karpenter_cluster_state_synced 1\n"), "{page}");
    assert!(get("/debug/pprof/cmdline").contains("runtime"));
    let address = server.address();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}
