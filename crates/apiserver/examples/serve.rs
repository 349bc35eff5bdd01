//! Serves an empty API on a port of this machine, for any client: `cargo run --example serve -- 8080`.

use tokio::net::TcpListener;
use windlass_apiserver::{Api, Config};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let serving = Api::new(Config::default()).serve_tcp(listener)?;
    println!("http://{}", serving.address());
    tokio::signal::ctrl_c().await?;
    serving.stop().await;
    Ok(())
}
