//! The one client of Azure. Its methods are in a file for each resource provider.

use std::sync::Arc;

use clock::Clock;
use http::{HeaderValue, Method};
use runtime::metrics::Registry;

use super::call::{Call, address, segments};
use super::error::Error;
use super::gallery_token::GalleryTokens;
use super::sender::{Sender, Shared};
use super::transport::Transport;
use super::windows::Windows;
use crate::auth::{Cached, Token, TokenError, TokenSource};
use crate::environment::Environment;
use crate::random::Random;

/// Where prices are published.
const PRICES: &str = "https://prices.azure.com";

/// What a client needs.
#[derive(Clone)]
pub struct Setup {
    /// How requests reach Azure.
    pub transport: Arc<dyn Transport>,
    /// Who we are.
    pub tokens: Arc<dyn TokenSource>,
    /// Which cloud it is.
    pub environment: Environment,
    /// The subscription of the cluster.
    pub subscription: String,
    /// Where prices are published.
    pub prices: String,
    /// The service with tokens for the images of AKS, if those are used by machines that we make ourselves.
    pub gallery: Option<String>,
    /// The version of this program, for the user agent.
    pub version: String,
    /// Where requests are counted.
    pub metrics: Registry,
    /// What time it is.
    pub clock: Clock,
    /// What waits differ by.
    pub seed: u64,
    /// Whether every request is logged.
    pub log_calls: bool,
}

impl Setup {
    /// A client of the public cloud.
    pub fn new(transport: Arc<dyn Transport>, tokens: Arc<dyn TokenSource>, subscription: &str) -> Self {
        Self {
            transport,
            tokens,
            environment: Environment::public(),
            subscription: subscription.to_owned(),
            prices: PRICES.to_owned(),
            gallery: None,
            version: String::new(),
            metrics: Registry::default(),
            clock: Clock::system(),
            seed: 0,
            log_calls: false,
        }
    }
}

/// Asks Azure. Clones share everything.
#[derive(Clone)]
pub struct Client {
    pub(super) sender: Sender,
    inner: Arc<Inner>,
}

struct Inner {
    environment: Environment,
    subscription: String,
    prices: String,
}

impl Client {
    /// A client.
    pub fn new(setup: Setup) -> Self {
        let agent = HeaderValue::from_str(&format!("karpenter-aks/v{}", setup.version));
        let shared = Arc::new(Shared {
            transport: setup.transport,
            windows: Arc::new(Windows::default()),
            random: Random::new(setup.seed),
            metrics: setup.metrics,
            clock: setup.clock,
            agent: agent.unwrap_or_else(|_| HeaderValue::from_static("karpenter-aks")),
            log_calls: setup.log_calls,
        });
        let nobody = Sender { shared, scope: setup.environment.scope(), tokens: None, gallery: None };
        let gallery = setup.gallery.map(|server| {
            let source = GalleryTokens { sender: nobody.clone(), server };
            Cached::as_told(Arc::new(source), setup.clock)
        });
        let tokens = Some(Cached::new(setup.tokens, setup.clock));
        Self {
            sender: Sender { tokens, gallery, ..nobody },
            inner: Arc::new(Inner {
                environment: setup.environment,
                subscription: setup.subscription,
                prices: setup.prices,
            }),
        }
    }

    /// The cloud that is asked.
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// The subscription of the cluster.
    pub fn subscription(&self) -> &str {
        &self.inner.subscription
    }

    /// A token for the images of AKS, if they need one.
    pub async fn gallery_token(&self) -> Result<Option<Token>, TokenError> {
        match &self.sender.gallery {
            Some(gallery) => gallery.token(&self.sender.scope).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn prices(&self) -> &str {
        &self.inner.prices
    }

    /// The address of something outside of subscriptions.
    pub(super) fn at(&self, path: &[&str], query: &[(&str, &str)]) -> String {
        address(&self.inner.environment.resource_manager, path.iter().copied(), query)
    }

    /// The address of something in the subscription.
    pub(super) fn in_subscription(&self, path: &[&str], query: &[(&str, &str)]) -> String {
        let path = [&["subscriptions", self.subscription()][..], path].concat();
        self.at(&path, query)
    }

    /// The address of something in a resource group of the subscription.
    pub(super) fn in_group(&self, group: &str, path: &[&str], query: &[(&str, &str)]) -> String {
        let path = [&["resourceGroups", group, "providers"][..], path].concat();
        self.in_subscription(&path, query)
    }

    /// The address of a resource by its ID.
    pub(super) fn by_id(&self, id: &str, query: &[(&str, &str)]) -> String {
        address(&self.inner.environment.resource_manager, segments(id), query)
    }

    /// Asks for one thing.
    pub(super) async fn get<T: serde::de::DeserializeOwned>(
        &self,
        operation: &'static str,
        url: String,
    ) -> Result<T, Error> {
        self.sender.ask(&Call::new(operation, Method::GET, url)).await
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("subscription", &self.inner.subscription).finish_non_exhaustive()
    }
}
