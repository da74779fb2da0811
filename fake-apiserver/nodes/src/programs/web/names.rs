//! Questions about names: `nslookup`, `dig`, `getent`, `ping`.

use std::net::IpAddr;

use network::Answer;

use super::super::shell::{Shell, Streams};
use super::{Arguments, complain};

/// An address for hosts outside of the cluster, from the block for documentation.
const OUTSIDE: &str = "192.0.2.1";

impl Shell {
    /// The whole name and the addresses behind a name.
    fn looked_up(&self, host: &str) -> Option<(String, Vec<String>)> {
        match self.nic().resolve(host).ok()? {
            Answer::Addresses(name, addresses) => {
                let addresses = addresses.iter().map(IpAddr::to_string);
                Some((name, addresses.collect()))
            }
            Answer::Outside(name) => Some((name, vec![OUTSIDE.to_owned()])),
        }
    }

    pub(super) fn nslookup(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let mut kind = "a";
        let mut operands = Vec::new();
        for argument in arguments {
            let option = argument
                .strip_prefix("-type=")
                .or_else(|| argument.strip_prefix("-q="));
            match option.or_else(|| argument.strip_prefix("-querytype=")) {
                Some(asked) => kind = asked,
                None if argument.starts_with('-') => {}
                None => operands.push(argument.as_str()),
            }
        }
        let Some(host) = operands.first() else {
            return complain(streams, "Usage: nslookup [-type=QUERY_TYPE] HOST [DNS_SERVER]", 1);
        };
        let server = self.nic().name_server();
        let mut out = format!("Server:\t\t{server}\nAddress:\t{server}:53\n\n");
        let found = if kind.eq_ignore_ascii_case("srv") {
            let records = self.nic().service_records(host);
            for (port, name) in &records {
                out.push_str(&format!("{host}\tservice = 0 100 {port} {name}\n"));
            }
            !records.is_empty()
        } else {
            let known = self.looked_up(host);
            for address in known.iter().flat_map(|(_, addresses)| addresses) {
                let name = known.as_ref().map_or(*host, |(name, _)| name.as_str());
                out.push_str(&format!("Name:\t{name}\nAddress: {address}\n"));
            }
            known.is_some()
        };
        if !found {
            out.push_str(&format!("** server can't find {host}: NXDOMAIN\n"));
        }
        out.push('\n');
        streams.out.write(out.as_bytes());
        i32::from(!found)
    }

    pub(super) fn dig(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let is_plain = |text: &&String| !text.starts_with(['+', '@', '-']);
        let words: Vec<&str> = arguments.iter().filter(is_plain).map(String::as_str).collect();
        let kinds = ["A", "AAAA", "SRV", "ANY", "PTR", "CNAME", "TXT"];
        let kind = words
            .iter()
            .find(|word| kinds.contains(&word.to_uppercase().as_str()));
        let kind = kind.map_or("A".to_owned(), |kind| kind.to_uppercase());
        let Some(host) = words
            .iter()
            .find(|word| !kinds.contains(&word.to_uppercase().as_str()))
        else {
            return 0;
        };
        let flag = |name: &str| arguments.iter().any(|text| text == name);
        // Without +search a name is asked for as it is.
        let asked = if flag("+search") || host.ends_with('.') {
            (*host).to_owned()
        } else {
            format!("{host}.")
        };
        let (name, values) = match kind.as_str() {
            "SRV" => {
                let records = self.nic().service_records(&asked);
                let values = records.iter().map(|(port, name)| format!("0 100 {port} {name}."));
                (asked.trim_end_matches('.').to_owned(), values.collect())
            }
            "PTR" => {
                let names = self.nic().names_of(&asked);
                let values = names.iter().map(|name| format!("{name}."));
                (asked.trim_end_matches('.').to_owned(), values.collect())
            }
            "CNAME" => match self.nic().alias_of(&asked) {
                Some((name, other)) => (name, vec![format!("{other}.")]),
                None => (String::new(), Vec::new()),
            },
            "A" | "ANY" => self.looked_up(&asked).unwrap_or_default(),
            _ => (String::new(), Vec::new()),
        };
        for value in values {
            let line = match flag("+short") {
                true => format!("{value}\n"),
                false => format!("{name}.\t30\tIN\t{kind}\t{value}\n"),
            };
            streams.out.write(line.as_bytes());
        }
        0
    }

    pub(super) fn getent(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let [database, host, ..] = arguments else { return 1 };
        if !matches!(database.as_str(), "hosts" | "ahosts" | "ahostsv4") {
            return 1;
        }
        let Some((name, addresses)) = self.looked_up(host) else {
            return 2;
        };
        for address in addresses {
            streams.out.write(format!("{address:<15} {name}\n").as_bytes());
        }
        0
    }

    /// Every address of the cluster answers, and so does the world outside.
    pub(super) fn ping(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let read = Arguments::read(arguments, "cwWiIst", &[]);
        let Some(host) = read.operands.first() else {
            return complain(streams, "ping: usage error: Destination address required", 1);
        };
        let Some((_, addresses)) = self.looked_up(host) else {
            return complain(streams, &format!("ping: bad address '{host}'"), 1);
        };
        let address = addresses.first().map_or("", String::as_str);
        let count: u32 = read.value(&["c"]).and_then(|text| text.parse().ok()).unwrap_or(1);
        let count = count.min(100);
        let mut out = format!("PING {host} ({address}): 56 data bytes\n");
        for number in 0..count {
            out.push_str(&format!(
                "64 bytes from {address}: seq={number} ttl=62 time=0.100 ms\n"
            ));
        }
        out.push_str(&format!(
            "\n--- {host} ping statistics ---\n{count} packets transmitted, {count} packets received, 0% packet loss\n"
        ));
        streams.out.write(out.as_bytes());
        0
    }
}
