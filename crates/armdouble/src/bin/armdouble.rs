//! The double as a program: an Azure on an address, for clients in other processes.
//!
//! It prints the address when it is ready, and writes every exchange to a file if that is asked for.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use armdouble::{Double, Settings};
use clap::Parser;
use clock::Clock;
use tokio::net::TcpListener;

/// An Azure in memory.
#[derive(Parser)]
struct Arguments {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:0")]
    address: String,
    /// The region.
    #[arg(long, default_value = "southcentralus")]
    location: String,
    /// The name of the cluster; its resource groups follow from it.
    #[arg(long, default_value = "walk")]
    cluster: String,
    /// How long operations take, in milliseconds; about what they take in Azure if it is not given.
    #[arg(long)]
    takes: Option<u64>,
    /// Whether any API version is accepted.
    #[arg(long)]
    any_version: bool,
    /// Where exchanges are written, one line of JSON each.
    #[arg(long)]
    record: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut settings = Settings::named(&arguments.cluster, &arguments.location);
    settings.has_strict_versions = !arguments.any_version;
    if let Some(takes) = arguments.takes {
        settings.set_every_lro(|lro| lro.takes = Duration::from_millis(takes));
    }
    let double = Double::with(Clock::system(), settings);
    let listener = TcpListener::bind(&arguments.address).await?;
    writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
    let record = arguments.record.map(File::create).transpose()?;
    let served = double.clone().serve(listener);
    tokio::select! {
        () = served => Ok(()),
        written = write_down(&double, record) => written,
    }
}

/// Writes what was asked since the last time, again and again.
async fn write_down(double: &Double, mut record: Option<File>) -> Result<()> {
    let mut written = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let Some(file) = &mut record else { continue };
        let new = double.requests_since(written);
        written += new.len();
        for exchange in new {
            writeln!(file, "{}", exchange.to_json())?;
        }
    }
}
