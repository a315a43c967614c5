//! Listening sockets, which stay on loopback unless the operator insists.

use std::io;
use std::net::SocketAddr;

use flott_core::config::{ConfigOption, Configuration, options};
use flott_core::{Error, Result};
use tokio::net::TcpListener;

/// What listens, and the options that say where.
pub(crate) struct Endpoint {
    /// For messages.
    pub(crate) what: &'static str,
    /// The host option.
    pub(crate) host: ConfigOption<String>,
    /// The port option.
    pub(crate) port: ConfigOption<u16>,
}

/// Binds an endpoint. Anyone who reaches it can run code here, so other addresses than loopback are refused
/// unless `security.insecure` says that the network is trusted.
pub(crate) async fn bind(config: &Configuration, endpoint: Endpoint) -> Result<(TcpListener, SocketAddr)> {
    let Endpoint { what, host, port } = endpoint;
    let (host_name, port_number) = (config.get(host)?, config.get(port)?);
    let addresses = tokio::net::lookup_host((host_name.as_str(), port_number)).await.map_err(|error| {
        Error::input(format!(
            "{what} cannot listen on '{host_name}': {error}: set {} to an address of this machine",
            host.key
        ))
    })?;
    let addresses: Vec<SocketAddr> = addresses.collect();
    if let Some(outside) = addresses.iter().find(|address| !address.ip().is_loopback())
        && !config.get(options::INSECURE)?
    {
        return Err(Error::input(format!(
            "{what} will not listen on {outside}: whoever can reach it can run any program as this user, and there is no TLS and no password yet. Set {} to 127.0.0.1, or, on a network where everyone is trusted, set {} to true",
            host.key,
            options::INSECURE.key
        )));
    }
    let listener = TcpListener::bind(addresses.as_slice()).await.map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => "the port is in use".to_owned(),
            _ => error.to_string(),
        };
        let message = format!(
            "{what} cannot listen on {host_name}:{port_number}: {reason}: stop what uses it, or set {} to another port (0 takes a free one)",
            port.key
        );
        Error::input(message)
    })?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
