//! Requests that really go over the network, as far as the next process could be.

use std::convert::Infallible;
use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A server that says what it was asked. It ends with the test's runtime.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service_fn(async |request: Request<Incoming>| {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let agent = parts.headers.get("user-agent").map_or("", |agent| agent.to_str().unwrap());
                let text =
                    format!("{} {} {agent} {}", parts.method, parts.uri, String::from_utf8_lossy(&body));
                let answer = Response::builder()
                    .status(418)
                    .header("x-ms-request-id", "r")
                    .body(Full::new(Bytes::from(text)));
                Ok::<_, Infallible>(answer.unwrap())
            });
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move { connection.await.unwrap() });
        }
    });
    address
}

fn request(method: &str, url: &str, body: &'static str) -> Request<Bytes> {
    let builder = Request::builder().method(method).uri(url).header("user-agent", "us");
    builder.body(Bytes::from_static(body.as_bytes())).unwrap()
}

#[tokio::test]
async fn requests_arrive_as_they_were_made_and_every_status_is_an_answer() {
    let address = echo().await;
    let network = Network::through(Matcher::builder().all("http://127.0.0.1:1").build()).unwrap();
    for (method, body) in [("GET", ""), ("GET", "{}"), ("PUT", "{\"a\":1}"), ("DELETE", ""), ("PATCH", "b")] {
        let answer =
            network.send(request(method, &format!("http://{address}/a?b=c%20d"), body)).await.unwrap();
        assert_eq!(answer.status(), 418);
        assert_eq!(answer.headers()["x-ms-request-id"], "r");
        let expected = format!("{method} /a?b=c%20d us {body}");
        assert_eq!(String::from_utf8_lossy(answer.body()), expected, "and not through a proxy");
    }
}

#[tokio::test]
async fn that_nobody_answers_is_said_with_the_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let network = Network::through(Matcher::builder().build()).unwrap();
    let error = network.send(request("GET", &format!("http://{address}/"), "")).await.unwrap_err();
    assert!(error.to_string().to_lowercase().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn what_is_encrypted_goes_through_the_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://me:secret@{}", listener.local_addr().unwrap());
    let network = Network::through(Matcher::builder().https(proxy).no("other.example").build()).unwrap();
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = vec![0; 1024];
        let count = stream.read(&mut text).await.unwrap();
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&text[..count]).into_owned()
    });
    let error = network.send(request("GET", "https://management.azure.com/a", "")).await.unwrap_err();
    let asked = asked.await.unwrap();
    assert!(asked.starts_with("CONNECT management.azure.com:443 HTTP/1.1"), "{asked}");
    assert!(asked.to_lowercase().contains("proxy-authorization: basic "), "{asked}");
    assert!(error.to_string().contains("unsuccessful"), "{error}");
}

/// One frame of HTTP/2: its type, flags and stream.
async fn frame(stream: &mut tokio::net::TcpStream) -> (u8, u8, u32) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut body = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]))
}

// azure.md 18: HTTP/2 pings (idle 30 s)
#[tokio::test]
async fn a_connection_that_nobody_uses_is_asked_whether_somebody_is_there() {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const PING_FRAME: u8 = 6;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        stream.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]).await.unwrap();
        let mut answered = false;
        loop {
            match frame(&mut stream).await {
                (SETTINGS, 0, _) => stream.write_all(&[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0]).await.unwrap(),
                (HEADERS, _, id) => {
                    // Status 200 and the end of the stream: nothing is under way from now on.
                    let mut answer = vec![0, 0, 1, HEADERS, 5];
                    answer.extend(id.to_be_bytes());
                    answer.push(0x88);
                    stream.write_all(&answer).await.unwrap();
                    answered = true;
                }
                (PING_FRAME, 0, _) if answered => return,
                _ => {}
            }
        }
    });
    let direct = hyper_util::client::legacy::connect::HttpConnector::new();
    let client: Client<_, Full<Bytes>> = builder(Duration::from_millis(50)).http2_only(true).build(direct);
    let answer =
        client.request(request("GET", &format!("http://{address}/"), "").map(Full::new)).await.unwrap();
    assert_eq!(answer.status(), 200);
    drop(answer);
    tokio::time::timeout(Duration::from_secs(20), server).await.expect("a ping comes").unwrap();
}
