//! Where reports are sent: the URL of a folder on a server.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::net::Ipv4Addr;
use thiserror::Error;

/// How the server is spoken to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scheme {
    /// TFTP, a write request (RFC 1350).
    Tftp,
    /// HTTP, method PUT (RFC 9110, 9.3.4).
    Http,
}

impl Scheme {
    const ALL: [Self; 2] = [Self::Tftp, Self::Http];

    fn word(self) -> &'static str {
        match self {
            Self::Tftp => "tftp",
            Self::Http => "http",
        }
    }

    /// The port that servers listen at if the URL has none.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Tftp => 69,
            Self::Http => 80,
        }
    }
}

/// The folder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// The protocol by which it is sent.
    pub scheme: Scheme,
    /// A name or an IPv4 address.
    pub host: String,
    /// The port, if it is not the usual one.
    pub port: Option<u16>,
    /// From a slash to a slash.
    folder: String,
}

/// What is wrong with a URL.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum TargetError {
    /// Another scheme, or none.
    #[error("`{url}` begins with neither http:// nor tftp://")]
    Scheme { url: String },
    /// A character that must be written as % and two digits, or that is none of a URL's.
    #[error("`{url}` has {letter:?}, which no URL of a folder has")]
    Letter { url: String, letter: char },
    /// No server.
    #[error("`{url}` names no server")]
    NoHost { url: String },
    /// A port that is none.
    #[error("`{url}` has the port `{port}`, which is not 1 to 65535")]
    Port { url: String, port: String },
    /// It is a file's.
    #[error(
        "`{url}` does not end with a slash: it must name a folder, to which each report's name is added"
    )]
    NoFolder { url: String },
    /// Firmware's TFTP takes no names.
    #[error(
        "`{url}` names the server `{host}`: for tftp it must be an IPv4 address, since firmware does not use DNS there"
    )]
    Name { url: String, host: String },
}

impl Target {
    /// Reads a folder's URL.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let url = || text.to_string();
        let split = Scheme::ALL.into_iter().find_map(|scheme| {
            Some((scheme, text.strip_prefix(scheme.word())?.strip_prefix("://")?))
        });
        let (scheme, rest) = split.ok_or_else(|| TargetError::Scheme { url: url() })?;
        // User and password, query and fragment: nothing of these is sent. Square brackets are IPv6's.
        let is_other =
            |letter: &char| !letter.is_ascii_graphic() || "@?#[]\\\"<>".contains(*letter);
        if let Some(letter) = rest.chars().find(is_other) {
            return Err(TargetError::Letter { url: url(), letter });
        }
        let (server, folder) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match server.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (server, None),
        };
        if host.is_empty() {
            return Err(TargetError::NoHost { url: url() });
        }
        if !folder.ends_with('/') {
            return Err(TargetError::NoFolder { url: url() });
        }
        let number = |port: &str| port.parse().ok().filter(|number| *number != 0_u16);
        let port = port.map(|port| {
            number(port).ok_or_else(|| TargetError::Port { url: url(), port: port.to_string() })
        });
        let port = port.transpose()?;
        if scheme == Scheme::Tftp && host.parse::<Ipv4Addr>().is_err() {
            return Err(TargetError::Name { url: url(), host: host.to_string() });
        }
        Ok(Self { scheme, host: host.to_string(), port, folder: folder.to_string() })
    }

    /// The server, as HTTP's header `Host` has it.
    #[must_use]
    pub fn server(&self) -> String {
        self.port.map_or(self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    /// The URL of a file in it.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        format!("{self}{name}")
    }

    /// The path of a file in it, as a TFTP server takes it: from its own folder on.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", &self.folder[1..])
    }

    /// The server's address, if it is one.
    #[must_use]
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.host.parse().ok()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.word(), self.server(), self.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folders_of_both_schemes() {
        let target = Target::parse("http://10.0.2.2:8080/lab/reports/").unwrap();
        assert_eq!((target.scheme, target.port), (Scheme::Http, Some(8080)));
        assert_eq!(target.server(), "10.0.2.2:8080");
        assert_eq!(target.url("R.jsonl"), "http://10.0.2.2:8080/lab/reports/R.jsonl");
        let target = Target::parse("http://boot.example/").unwrap();
        assert_eq!((target.server().as_str(), target.address()), ("boot.example", None));
        let target = Target::parse("tftp://10.0.2.2/reports/").unwrap();
        assert_eq!(target.address(), Some(Ipv4Addr::new(10, 0, 2, 2)));
        assert_eq!((target.path("R").as_str(), target.port), ("reports/R", None));
        assert_eq!((Scheme::Tftp.port(), Scheme::Http.port()), (69, 80));
    }

    #[test]
    fn errors_name_the_url_and_the_reason() {
        let table = [
            ("ftp://a/", "`ftp://a/` begins with neither http:// nor tftp://"),
            ("https://a/", "begins with neither"),
            ("10.0.2.2/", "begins with neither"),
            ("http:///x/", "names no server"),
            ("http://:80/", "names no server"),
            ("http://a:0/", "has the port `0`, which is not 1 to 65535"),
            ("http://a:70000/", "has the port `70000`"),
            ("http://a", "does not end with a slash"),
            ("http://a/report.jsonl", "does not end with a slash"),
            ("http://a/b c/", "has ' ', which no URL"),
            ("http://me@a/", "has '@'"),
            ("http://[fe80::1]/", "has '['"),
            ("http://a/\u{e9}/", "has 'é'"),
            ("tftp://server/x/", "names the server `server`: for tftp it must be an IPv4"),
        ];
        for (text, part) in table {
            let error = Target::parse(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(text), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_alike(text in "((http|tftp)://)?\\PC{0,30}/?") {
            if let Ok(target) = Target::parse(&text) {
                let again = Target::parse(&target.to_string()).unwrap();
                prop_assert_eq!(again, target);
            }
        }
    }
}
