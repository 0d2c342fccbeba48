//! Connections, through a proxy where the environment says so.

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(30);

/// Makes connections. Only what is encrypted goes through proxies: what is not is next to us.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    direct: HttpConnector,
    proxies: Arc<Matcher>,
}

impl Connector {
    pub(crate) fn new(proxies: Matcher) -> Self {
        let mut direct = HttpConnector::new();
        direct.enforce_http(false);
        direct.set_nodelay(true);
        direct.set_connect_timeout(Some(CONNECT));
        Self { direct, proxies: Arc::new(proxies) }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let proxy = (to.scheme_str() == Some("https")).then(|| self.proxies.intercept(&to)).flatten();
        let Some(proxy) = proxy else {
            let connecting = self.direct.call(to);
            return Box::pin(async move { Ok(connecting.await?) });
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        if let Some(who) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(who.clone());
        }
        Box::pin(async move { Ok(tunnel.call(to).await?) })
    }
}
