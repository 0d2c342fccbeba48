//! Certificates of the administrator: a server that only they vouch for.

use std::path::PathBuf;
use std::sync::Arc;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_ec2::config::Credentials;
use rcgen::{CertifiedKey, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::ca_bundle::client;

/// A certificate for `localhost` that vouches for itself, and its key.
fn certificate() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

/// A file that is gone when it is not needed any more.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("karpenter-{}-{name}.pem", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// An EC2 on loopback with a certificate of its own; its address.
async fn server(ours: &CertifiedKey<KeyPair>) -> String {
    let key = PrivateKeyDer::from_pem_slice(ours.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![ours.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut heard = vec![0; 65_536];
            drop(stream.read(&mut heard).await);
            let body = "<DescribeSubnetsResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><subnetSet/></DescribeSubnetsResponse>";
            let answer = format!(
                "HTTP/1.1 200 said\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            drop(stream.write_all(answer.as_bytes()).await);
            drop(stream.shutdown().await);
        }
    });
    url
}

#[tokio::test]
async fn a_server_that_only_the_bundle_vouches_for_is_trusted_with_it_and_not_without() {
    let (ours, other) = (certificate(), certificate().cert.pem());
    let url = server(&ours).await;
    let both = format!("{other}\n# ours\n{}", ours.cert.pem());
    // A bundle has several certificates, and comments between them.
    for (bundle, is_trusted) in [(Some(both), true), (Some(other), false), (None, false)] {
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .endpoint_url(&url)
            .retry_config(aws_sdk_ec2::config::retry::RetryConfig::disabled())
            .credentials_provider(Credentials::new("key", "secret", None, None, "test"));
        if let Some(bundle) = &bundle {
            let file = File::new(if is_trusted { "good" } else { "other" }, bundle);
            loader = loader.http_client(client(&file.0).unwrap());
        }
        let services = crate::connect::services(&loader.load().await, "us-east-1", &[]);
        let answer = services.ec2.subnets(&[]).await;
        assert_eq!(answer.is_ok(), is_trusted, "{bundle:?}: {answer:?}");
    }
}

#[test]
fn a_bundle_that_cannot_be_used_is_named_with_the_reason() {
    let broken = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    for (name, content, why) in
        [("empty", "", "holds no certificate"), ("broken", broken, "a certificate that cannot be read")]
    {
        let file = File::new(name, content);
        let error = client(&file.0).unwrap_err().to_string();
        assert!(error.contains("AWS_CA_BUNDLE") && error.contains(why), "{error}");
        assert!(error.contains(&*file.0.to_string_lossy()), "{error}");
    }
    let error = client("/nowhere/bundle.pem".as_ref()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/bundle.pem, which cannot be read"), "{error}");
}
