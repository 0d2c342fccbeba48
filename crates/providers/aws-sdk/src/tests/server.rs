//! An AWS on loopback that says what it is told to say, and remembers what it heard.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use aws::port::Services;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_ec2::config::{Credentials, SharedInterceptor};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What it says: a status, headers and a body.
#[derive(Clone, Debug)]
pub(super) struct Said {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
}

impl Said {
    pub(super) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub(super) fn ok(body: impl Into<String>) -> Self {
        Self::new(200, body)
    }

    pub(super) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// What EC2 says when it refuses something.
    pub(super) fn refusal(status: u16, code: &str) -> Self {
        let body = format!(
            "<Response><Errors><Error><Code>{code}</Code><Message>no</Message></Error></Errors>\
             <RequestID>abc</RequestID></Response>"
        );
        Self::new(status, body).with("x-amzn-requestid", "abc")
    }
}

/// What it heard.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// Method and path.
    pub(super) line: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Heard {
    /// What is asked: by a header, a parameter, or the path.
    pub(super) fn action(&self) -> String {
        let of_header = self.headers.get("x-amz-target").and_then(|target| target.rsplit('.').next());
        let of_query = || self.parameters()["Action"].as_str().map(str::to_owned);
        of_header.map(str::to_owned).or_else(of_query).unwrap_or_else(|| self.line.clone())
    }

    /// What tells EC2 that two requests are one.
    pub(super) fn token(&self) -> Option<String> {
        let token = self.body.split('&').find_map(|pair| pair.strip_prefix("ClientToken="));
        token.map(decoded)
    }

    /// Parameters as a tree, whichever protocol it is; without what is the same or random in all requests.
    pub(super) fn parameters(&self) -> Value {
        if self.body.is_empty() || self.body.starts_with('{') {
            return serde_json::from_str(&self.body).unwrap_or_else(|_| json!({}));
        }
        let mut tree = Map::new();
        for pair in self.body.split('&') {
            let (key, value) = pair.split_once('=').expect("parameters have a value");
            let key = decoded(key);
            put(&mut tree, &mut key.split('.'), decoded(value));
        }
        for name in ["Version", "ClientToken"] {
            tree.remove(name);
        }
        listed(Value::Object(tree))
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).expect("two digits")
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).expect("requests are text")
}

fn put<'a>(tree: &mut Map<String, Value>, path: &mut impl Iterator<Item = &'a str>, value: String) {
    let mut at = path.next().map(|key| tree.entry(key).or_insert_with(|| json!({})));
    for key in path {
        let fields = at.take().and_then(Value::as_object_mut).expect("nothing is a text and a tree");
        at = Some(fields.entry(key).or_insert_with(|| json!({})));
    }
    *at.expect("a parameter has a name") = Value::String(value);
}

/// Trees whose keys are numbers are lists; IAM calls what is in them members.
fn listed(value: Value) -> Value {
    let Value::Object(mut fields) = value else { return value };
    if let (1, Some(members)) = (fields.len(), fields.get_mut("member")) {
        return listed(members.take());
    }
    let mut numbered: Vec<(usize, Value)> =
        fields.iter().filter_map(|(key, value)| Some((key.parse().ok()?, value.clone()))).collect();
    if !fields.is_empty() && numbered.len() == fields.len() {
        numbered.sort_by_key(|(number, _)| *number);
        return numbered.into_iter().map(|(_, value)| listed(value)).collect();
    }
    fields.into_iter().map(|(key, value)| (key, listed(value))).collect()
}

/// The server.
pub(super) struct Server {
    url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Server {
    /// Says one thing after the other, and the last one again and again.
    pub(super) async fn start(said: impl IntoIterator<Item = Said>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let (heard, mut said) = (Arc::default(), said.into_iter().collect::<VecDeque<_>>());
        let this = Self { url, heard: Arc::clone(&heard) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let next = if said.len() > 1 { said.pop_front() } else { said.front().cloned() };
                let next = next.expect("there is something to say");
                if let Some(request) = converse(stream, &next).await {
                    heard.lock().expect("nobody panicked").push(request);
                }
            }
        });
        this
    }

    /// Everything that was heard.
    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("nobody panicked").clone()
    }

    /// The one request that was heard.
    #[track_caller]
    pub(super) fn only(&self) -> Heard {
        let heard = self.heard();
        assert_eq!(heard.len(), 1, "{heard:?}");
        heard.into_iter().next().expect("there is one")
    }

    /// The services of the port, which ask this server.
    pub(super) async fn services(&self, interceptors: &[SharedInterceptor]) -> Services {
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .endpoint_url(&self.url)
            .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
            .load()
            .await;
        crate::connect::services(&config, "us-east-1", interceptors)
    }
}

/// Hears one request and answers it.
async fn converse(mut stream: TcpStream, said: &Said) -> Option<Heard> {
    let mut text = Vec::new();
    let end = loop {
        if let Some(at) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(text[..end].to_vec()).expect("headers are text");
    let line =
        head.lines().next().and_then(|line| line.strip_suffix(" HTTP/1.1")).unwrap_or_default().to_owned();
    let headers: BTreeMap<String, String> = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or_default();
    while text.len() < end + 4 + length {
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    }
    let Said { status, headers: more, body } = said;
    let more: Vec<String> = more.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let more = more.concat();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} said\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await.ok()?;
    Some(Heard {
        line,
        headers,
        body: String::from_utf8(text[end + 4..].to_vec()).expect("requests are text"),
    })
}
