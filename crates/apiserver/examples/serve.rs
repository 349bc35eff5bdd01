//! Serves an API on a port of this machine, for any client: `cargo run --example serve -- 8080`, with a directory after the
//! port to keep everything in.

use tokio::net::TcpListener;
use windlass_apiserver::{Api, Config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let data_dir = std::env::args().nth(2).map(Into::into);
    let serving = Api::open(Config { data_dir, ..Config::default() }).await?.serve_tcp(listener)?;
    println!("http://{}", serving.address());
    tokio::signal::ctrl_c().await?;
    serving.stop().await;
    Ok(())
}
