//! An Azure for tests: the operations that a provider of AKS nodes needs, in memory, in the process or over HTTP.
//!
//! ```text
//!   azure::arm::Transport ──┐                        ┌── World       resources, SKUs, quota, images, prices
//!   HTTP (Double::serve) ───┴─► Call ─► Route ─► ────┼── Operations  what takes long, and when it is done
//!                                │                   ├── Failures    what the next calls are told instead
//!   Double::requests() ◄─────────┘                   └── Throttles   how many calls a window has
//! ```
//!
//! Nothing runs in the background: whatever is due is done when somebody asks, by the clock of tokio. So a test with a
//! paused clock sees hours pass, in an order that is always the same.
//!
//! Unit tests *inside* the crate `azure` cannot use it as a transport, because they are another build of that crate;
//! tests in its folder `tests` can.

mod addresses;
mod answer;
mod bodies;
mod call;
mod checks;
mod clusters;
mod compute;
mod double;
mod extensions;
mod failures;
mod fit;
mod fixtures;
mod gallery;
mod graph;
mod lists;
mod machines;
mod network;
mod operations;
mod others;
mod prices;
mod quota;
mod record;
mod route;
mod server;
mod settings;
mod skus;
mod state;
mod throttles;
mod tokens;
mod world;

pub use answer::{Refusal, Said};
pub use double::Double;
pub use failures::{Failure, Times};
pub use gallery::Images;
pub use prices::Prices;
pub use quota::Quota;
pub use record::Recorded;
pub use route::Kind;
pub use settings::{Form, Lro, Reservation, Settings};
pub use skus::{Sku, Skus};
pub use throttles::Throttle;
pub use world::World;
