//! Addresses and networks, read as Go's lenient parser reads them and judged as the newest rules do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::errors::Errors;
use super::path::Path;

/// Reads an address; leading zeros in an IPv4 address are taken as decimal.
pub fn parse(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part
            .trim_start_matches('0')
            .parse()
            .or_else(|error| {
                if part.bytes().all(|b| b == b'0') {
                    Ok(0)
                } else {
                    Err(error)
                }
            })
            .ok()?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

/// An address and the length of its network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// Its address.
    pub address: IpAddr,
    /// How many bits of the address count.
    pub prefix: u8,
}

impl Network {
    /// Reads a text of `address/prefix` strictly.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, prefix) = text.split_once('/')?;
        let address = parse(address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if prefix.is_empty() || !prefix.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let prefix: u8 = prefix.parse().ok().filter(|prefix| *prefix <= most)?;
        Some(Network { address, prefix })
    }

    fn bits(address: IpAddr) -> (u128, u8) {
        match address {
            IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
            IpAddr::V6(v6) => (u128::from(v6), 128),
        }
    }

    /// The network's first address.
    pub fn first(self) -> IpAddr {
        let (bits, width) = Self::bits(self.address);
        let host = width - self.prefix;
        let kept = bits
            .checked_shr(u32::from(host))
            .and_then(|bits| bits.checked_shl(u32::from(host)))
            .unwrap_or(0);
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(u32::try_from(kept).unwrap_or(0))),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(kept)),
        }
    }

    /// Whether an address is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        let same_kind = self.address.is_ipv4() == address.is_ipv4();
        same_kind
            && Network {
                address,
                prefix: self.prefix,
            }
            .first()
                == self.first()
    }
}

/// An address in a field that once took more; `before` are values that may stay as they are.
pub fn address(path: &Path<'_>, text: &str, before: &[&str], errors: &mut Errors) -> bool {
    if before.contains(&text) {
        return true;
    }
    let found = errors.len();
    match parse(text) {
        None => errors.invalid(
            path,
            text,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        Some(IpAddr::V4(_)) if text.parse::<IpAddr>().is_err() => {
            errors.invalid(path, text, "must not have leading 0s");
        }
        Some(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
            errors.invalid(path, text, "must not be an IPv4-mapped IPv6 address");
        }
        Some(_) => {}
    }
    errors.len() == found
}

/// An address in a field that takes the canonical form only.
pub fn canonical_address(path: &Path<'_>, text: &str, errors: &mut Errors) -> bool {
    if !address(path, text, &[], errors) {
        return false;
    }
    let canonical = parse(text).map(|address| address.to_string()).unwrap_or_default();
    if canonical != text {
        errors.invalid(path, text, format!("must be in canonical form (\"{canonical}\")"));
    }
    canonical == text
}

/// A network in a field that once took more.
pub fn network(path: &Path<'_>, text: &str, before: &[&str], errors: &mut Errors) {
    if before.contains(&text) {
        return;
    }
    let Some(network) = Network::parse(text) else {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        return errors.invalid(path, text, detail);
    };
    let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
    if address.parse::<IpAddr>().is_err() || (prefix.len() > 1 && prefix.starts_with('0')) {
        errors.invalid(path, text, "must not have leading 0s in IP or prefix length");
    } else if matches!(network.address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
        errors.invalid(path, text, "must not have an IPv4-mapped IPv6 address");
    } else if network.first() != network.address {
        errors.invalid(path, text, "must not have bits set beyond the prefix length");
    }
}

/// A network in a field that takes the canonical form only.
pub fn canonical_network(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let found = errors.len();
    network(path, text, &[], errors);
    if errors.len() > found {
        return;
    }
    if let Some(network) = Network::parse(text) {
        let canonical = format!("{}/{}", network.first(), network.prefix);
        if canonical != text {
            errors.invalid(path, text, format!("must be in canonical form (\"{canonical}\")"));
        }
    }
}

/// The address of an interface, with the length of its network's prefix, in the canonical form.
pub fn interface(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let Some(Network { address, prefix }) = Network::parse(text) else {
        let detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return errors.invalid(path, text, detail);
    };
    let mapped = match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped(),
        IpAddr::V4(_) => None,
    };
    let canonical = match mapped {
        Some(v4) if prefix > 32 => format!("{v4}/{}", prefix.saturating_sub(96)),
        Some(v4) => format!("{v4}/{prefix}"),
        None => format!("{address}/{prefix}"),
    };
    if canonical != text {
        errors.invalid(path, text, format!("must be in canonical form (\"{canonical}\")"));
    }
}

/// An address that something may be reached at: not this host, not this link.
pub fn endpoint(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let Some(address) = parse(text) else {
        return errors.invalid(path, text, "must be a valid IP address");
    };
    let (link_local, link_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => (
            v6.segments()
                .first()
                .is_some_and(|first| first & 0xffc0 == 0xfe80),
            v6.segments()
                .first()
                .is_some_and(|first| first & 0xff0f == 0xff02),
        ),
    };
    if address.is_unspecified() {
        errors.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        errors.invalid(
            path,
            text,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        );
    }
    if link_local {
        errors.invalid(
            path,
            text,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        );
    }
    if link_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.invalid(path, text, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("10.0.0.1", None)]
    #[case("10.0.0.01", Some("must not have leading 0s"))]
    #[case("::ffff:1.2.3.4", Some("must not be an IPv4-mapped IPv6 address"))]
    #[case("x", Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))]
    #[case(
        "256.0.0.1",
        Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    )]
    fn addresses(#[case] text: &str, #[case] expected: Option<&str>) {
        let mut errors = Errors::default();
        address(&Path::new("ip"), text, &[], &mut errors);
        assert_eq!(
            errors.into_vec().first().map(|error| error.detail.as_str()),
            expected
        );
    }

    #[rstest]
    #[case("10.0.0.0/8", None)]
    #[case("10.0.0.1/8", Some("must not have bits set beyond the prefix length"))]
    #[case(
        "10.0.0.0/33",
        Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
    )]
    #[case("0.0.0.0/0", None)]
    fn networks(#[case] text: &str, #[case] expected: Option<&str>) {
        let mut errors = Errors::default();
        network(&Path::new("cidr"), text, &[], &mut errors);
        assert_eq!(
            errors.into_vec().first().map(|error| error.detail.as_str()),
            expected
        );
    }
}
